//! Converts JavaScript values to `serde_json::Value` with the rules of `JSON.stringify`: `toJSON` is called, undefined
//! properties are dropped. BigInt, cycles and deep nesting are errors.
use rquickjs::{Array, Ctx, Error, Value};
use serde_json::{Map, Number, Value as Json};

use crate::{
    js_ref::{JsRef, NameCache, Shape},
    text,
};

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
    match Converter::new(ctx, limit).value(&Key::Name(""), JsRef::new(ctx, value))? {
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
    let mut converter = Converter::new(ctx, limit);
    let values = JsRef::new(ctx, values.as_value());
    let mut given = values.length()?;
    while given > 0 && values.item(given - 1)?.is_undefined() {
        given -= 1;
    }
    let mut arguments = Vec::with_capacity(given.min(16));
    for index in 0..given {
        let argument = converter.value(&Key::Index(index), values.item(index)?)?;
        arguments.push(argument.unwrap_or(Json::Null));
    }
    Ok(arguments)
}

/// The key of a value, which is passed to `toJSON`.
enum Key<'a> {
    Name(&'a str),
    Index(usize),
}

struct Converter<'a, 'js> {
    ctx: &'a Ctx<'js>,
    limit: usize,
    bytes: usize,
    /// The enclosing objects, to detect cycles.
    trail: Vec<usize>,
    names: NameCache<'a>,
}

impl<'a, 'js> Converter<'a, 'js> {
    fn new(ctx: &'a Ctx<'js>, limit: usize) -> Self {
        Self { ctx, limit, bytes: 0, trail: Vec::new(), names: NameCache::new(ctx) }
    }

    fn count(&mut self, bytes: usize) -> Result<(), ConvertError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit { Err(ConvertError::TooLarge) } else { Ok(()) }
    }

    /// `None` for values that `JSON.stringify` leaves out.
    fn value(&mut self, key: &Key<'_>, value: JsRef<'a>) -> Result<Option<Json>, ConvertError> {
        let value = match value.replaced(key)? {
            Some(replaced) => replaced,
            None => value,
        };
        match value.shape() {
            Shape::Nothing => return Ok(None),
            Shape::Array | Shape::Object => return self.object(&value).map(Some),
            Shape::Text => {
                let text = match value.text()? {
                    Some(text) => text,
                    None => text::to_well_formed(self.ctx, value.value(self.ctx))?,
                };
                self.count(text.len() + 3)?;
                return Ok(Some(Json::String(text)));
            }
            _ => self.count(5)?,
        }
        match value.shape() {
            Shape::Bool(truth) => Ok(Some(Json::Bool(truth))),
            Shape::Number(number) => Ok(Some(json_number(number))),
            Shape::Null => Ok(Some(Json::Null)),
            _ => Err(ConvertError::Bad("a BigInt".to_owned())),
        }
    }

    fn object(&mut self, object: &JsRef<'a>) -> Result<Json, ConvertError> {
        if self.trail.contains(&object.address()) {
            return Err(ConvertError::Bad("a cycle".to_owned()));
        }
        if self.trail.len() >= MAX_DEPTH {
            return Err(ConvertError::Bad(format!("nested deeper than {MAX_DEPTH}")));
        }
        self.count(2)?;
        self.trail.push(object.address());
        let json = match object.shape() {
            Shape::Array => self.items(object)?,
            _ => self.members(object)?,
        };
        self.trail.pop();
        Ok(json)
    }

    fn items(&mut self, array: &JsRef<'a>) -> Result<Json, ConvertError> {
        let length = array.length()?;
        let mut items = Vec::with_capacity(length.min(64));
        for index in 0..length {
            let item = self.value(&Key::Index(index), array.item(index)?)?;
            if item.is_none() {
                self.count(5)?;
            }
            items.push(item.unwrap_or(Json::Null));
        }
        Ok(Json::Array(items))
    }

    fn members(&mut self, object: &JsRef<'a>) -> Result<Json, ConvertError> {
        let names = object.names()?;
        let mut members = Map::with_capacity(names.as_slice().len().min(64));
        for name in names.as_slice() {
            let value = object.member(name.atom)?;
            if value.is_undefined() {
                continue;
            }
            let text = match self.names.text(&names, name.atom)? {
                Some(text) => text,
                None => text::to_well_formed(self.ctx, names.value(self.ctx, name.atom)?)?,
            };
            if let Some(json) = self.value(&Key::Name(&text), value)? {
                self.count(text.len() + 4)?;
                members.insert(text, json);
            }
        }
        Ok(Json::Object(members))
    }
}

impl JsRef<'_> {
    /// The result of `toJSON`, if the object has it.
    fn replaced(&self, key: &Key<'_>) -> rquickjs::Result<Option<Self>> {
        if !self.is_object() {
            return Ok(None);
        }
        self.to_json(|| match key {
            Key::Name(name) => (*name).to_owned(),
            Key::Index(index) => index.to_string(),
        })
    }
}

fn json_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= MAX_WHOLE {
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
