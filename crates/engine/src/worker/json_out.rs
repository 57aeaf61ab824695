//! Converts JavaScript values to `serde_json::Value` with the rules of `JSON.stringify`: `toJSON` is called, undefined
//! properties are dropped. BigInt, cycles and deep nesting are errors.
use rquickjs::{
    Array, Atom, Ctx, Error, Function, Object, String as JsString, Type, Value, function::This,
    object::Filter,
};
use serde_json::{Map, Number, Value as Json};

use super::text;

const MAX_DEPTH: usize = 128;
/// Larger whole numbers are not exact and remain floats.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

#[derive(Debug)]
pub(crate) enum ConvertError {
    TooLarge,
    Bad(String),
    /// A getter, a trap or `toJSON` threw; the exception is pending.
    Thrown(Error),
}

impl From<Error> for ConvertError {
    fn from(error: Error) -> Self {
        Self::Thrown(error)
    }
}

/// Converts the result of a handler; `undefined` becomes null.
pub(crate) fn result<'js>(ctx: &Ctx<'js>, value: &Value<'js>, limit: usize) -> Result<Json, ConvertError> {
    let mut converter = Converter { ctx, limit, bytes: 0, trail: Vec::new() };
    match converter.value(String::new, value.clone())? {
        Some(json) => Ok(json),
        None if value.is_undefined() => Ok(Json::Null),
        None => Err(ConvertError::Bad("a function or symbol".to_owned())),
    }
}

/// Converts the arguments of a host call. Trailing `undefined` arguments are dropped.
pub(crate) fn arguments<'js>(
    ctx: &Ctx<'js>,
    values: &Array<'js>,
    limit: usize,
) -> Result<Vec<Json>, ConvertError> {
    let mut converter = Converter { ctx, limit, bytes: 0, trail: Vec::new() };
    let mut given = values.len();
    while given > 0 && values.get::<Value<'js>>(given - 1)?.is_undefined() {
        given -= 1;
    }
    let mut arguments = Vec::with_capacity(given.min(16));
    for index in 0..given {
        let argument = converter.value(|| index.to_string(), values.get(index)?)?;
        arguments.push(argument.unwrap_or(Json::Null));
    }
    Ok(arguments)
}

struct Converter<'a, 'js> {
    ctx: &'a Ctx<'js>,
    limit: usize,
    bytes: usize,
    /// The enclosing objects, to detect cycles.
    trail: Vec<Value<'js>>,
}

impl<'js> Converter<'_, 'js> {
    fn count(&mut self, bytes: usize) -> Result<(), ConvertError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit { Err(ConvertError::TooLarge) } else { Ok(()) }
    }

    /// `None` for values that `JSON.stringify` leaves out. The key is passed to `toJSON`.
    fn value(
        &mut self,
        key: impl FnOnce() -> String,
        value: Value<'js>,
    ) -> Result<Option<Json>, ConvertError> {
        let value = match value.as_object() {
            Some(object) => match object.get::<_, Value<'js>>("toJSON")?.as_function() {
                Some(to_json) => call_to_json(to_json, object, key())?,
                None => value,
            },
            None => value,
        };
        let json = match value.type_of() {
            Type::Undefined | Type::Uninitialized | Type::Symbol | Type::Function | Type::Constructor => {
                return Ok(None);
            }
            Type::String => {
                let text = self.text(&value)?;
                self.count(text.len() + 3)?;
                return Ok(Some(Json::String(text)));
            }
            Type::Null => Json::Null,
            Type::Bool => Json::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => json_number(value.as_number().unwrap_or(f64::NAN)),
            Type::BigInt => return Err(ConvertError::Bad("a BigInt".to_owned())),
            _ => return self.object(value).map(Some),
        };
        self.count(5)?;
        Ok(Some(json))
    }

    fn text(&self, value: &Value<'js>) -> rquickjs::Result<String> {
        value.as_string().map_or(Ok(String::new()), |text| text::to_rust_string(self.ctx, text))
    }

    fn object(&mut self, value: Value<'js>) -> Result<Json, ConvertError> {
        if self.trail.contains(&value) {
            return Err(ConvertError::Bad("a cycle".to_owned()));
        }
        if self.trail.len() >= MAX_DEPTH {
            return Err(ConvertError::Bad(format!("nested deeper than {MAX_DEPTH}")));
        }
        self.count(2)?;
        self.trail.push(value.clone());
        let json = match (value.as_array(), value.as_object()) {
            (Some(array), _) => self.items(array)?,
            (None, Some(object)) => self.members(object)?,
            (None, None) => return Err(ConvertError::Bad(format!("a {}", value.type_name()))),
        };
        self.trail.pop();
        Ok(json)
    }

    fn items(&mut self, array: &Array<'js>) -> Result<Json, ConvertError> {
        // `Array::len` is an `int`, which is too small for sparse arrays.
        let length: f64 = array.as_object().get("length")?;
        let length = length as usize;
        let mut items = Vec::with_capacity(length.min(64));
        for index in 0..length {
            let item = self.value(|| index.to_string(), array.get(index)?)?;
            if item.is_none() {
                self.count(5)?;
            }
            items.push(item.unwrap_or(Json::Null));
        }
        Ok(Json::Array(items))
    }

    fn members(&mut self, object: &Object<'js>) -> Result<Json, ConvertError> {
        let names = object.own_keys::<Atom<'js>>(Filter::new().string().enum_only());
        let mut members = Map::new();
        for name in names {
            let name = name?;
            let value: Value<'js> = object.get(name.clone())?;
            if value.is_undefined() {
                continue;
            }
            let name = self.text(&name.to_value()?)?;
            if let Some(json) = self.value(|| name.clone(), value)? {
                self.count(name.len() + 4)?;
                members.insert(name, json);
            }
        }
        Ok(Json::Object(members))
    }
}

fn call_to_json<'js>(
    to_json: &Function<'js>,
    object: &Object<'js>,
    key: String,
) -> rquickjs::Result<Value<'js>> {
    let key = JsString::from_str(object.ctx().clone(), &key)?;
    to_json.call((This(object.clone()), key))
}

fn json_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= MAX_WHOLE {
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
