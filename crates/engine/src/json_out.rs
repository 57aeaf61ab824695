//! Values of a realm into `serde_json::Value`, by walking, with the rules of `JSON.stringify`: `toJSON` is called,
//! undefined members are dropped. What JSON cannot hold (BigInt, cycles, great depth) is refused.
use rquickjs::{Array, Atom, Ctx, Error, Object, Value, atom::PredefinedAtom, function::This};
use serde_json::{Map, Number, Value as Json};

use crate::text;

const MAX_DEPTH: usize = 128;
/// Beyond it, whole numbers are not exact any more and stay floats.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

#[derive(Debug)]
pub(crate) enum Refusal {
    TooLarge,
    Bad(String),
    /// A getter, a trap or `toJSON` threw; the exception is pending.
    Thrown(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Thrown(error)
    }
}

/// What a handler returned; `undefined` counts as null.
pub(crate) fn result<'js>(ctx: &Ctx<'js>, value: Value<'js>, limit: usize) -> Result<Json, Refusal> {
    let missing = value.is_undefined();
    match Walk::new(ctx, limit).value(&Key::Name(""), value)? {
        Some(json) => Ok(json),
        None if missing => Ok(Json::Null),
        None => Err(Refusal::Bad("a function or symbol".to_owned())),
    }
}

/// The arguments of a host call; `undefined` at the end counts as absent.
pub(crate) fn arguments<'js>(
    ctx: &Ctx<'js>,
    values: &Array<'js>,
    limit: usize,
) -> Result<Vec<Json>, Refusal> {
    let mut walk = Walk::new(ctx, limit);
    let mut given = length(values)?;
    while given > 0 && values.get::<Value<'js>>(given - 1)?.is_undefined() {
        given -= 1;
    }
    let mut arguments = Vec::with_capacity(given.min(16));
    for index in 0..given {
        let argument = walk.value(&Key::Index(index), values.get(index)?)?;
        arguments.push(argument.unwrap_or(Json::Null));
    }
    Ok(arguments)
}

enum Key<'a, 'js> {
    Name(&'a str),
    Index(usize),
    Atom(&'a Atom<'js>),
}

struct Walk<'js> {
    ctx: Ctx<'js>,
    limit: usize,
    bytes: usize,
    /// The objects that the present one lies in.
    trail: Vec<Object<'js>>,
}

impl<'js> Walk<'js> {
    fn new(ctx: &Ctx<'js>, limit: usize) -> Self {
        Self { ctx: ctx.clone(), limit, bytes: 0, trail: Vec::new() }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit { Err(Refusal::TooLarge) } else { Ok(()) }
    }

    /// `None` stands for what `JSON.stringify` leaves out.
    fn value(&mut self, key: &Key<'_, 'js>, value: Value<'js>) -> Result<Option<Json>, Refusal> {
        let value = self.replaced(key, value)?;
        if let Some(string) = value.as_string() {
            let text = text::of(&self.ctx, string)?;
            self.count(text.len() + 3)?;
            return Ok(Some(Json::String(text)));
        }
        if value.is_function() || value.is_symbol() || value.is_undefined() {
            return Ok(None);
        }
        if let Some(object) = value.as_object() {
            return self.object(object.clone()).map(Some);
        }
        self.count(5)?;
        if let Some(truth) = value.as_bool() {
            return Ok(Some(Json::Bool(truth)));
        }
        if let Some(number) = value.as_number() {
            return Ok(Some(json_number(number)));
        }
        if value.is_null() {
            return Ok(Some(Json::Null));
        }
        Err(Refusal::Bad("a BigInt".to_owned()))
    }

    /// What `toJSON` makes of an object that has one.
    fn replaced(&self, key: &Key<'_, 'js>, value: Value<'js>) -> Result<Value<'js>, Refusal> {
        let Some(object) = value.as_object() else { return Ok(value) };
        let to_json: Value<'js> = object.get(PredefinedAtom::ToJSON)?;
        let Some(to_json) = to_json.as_function() else { return Ok(value) };
        let key = match key {
            Key::Name(name) => (*name).to_owned(),
            Key::Index(index) => index.to_string(),
            Key::Atom(atom) => text::of_key(&self.ctx, atom)?,
        };
        Ok(to_json.call((This(value), key))?)
    }

    fn object(&mut self, object: Object<'js>) -> Result<Json, Refusal> {
        if self.trail.contains(&object) {
            return Err(Refusal::Bad("a cycle".to_owned()));
        }
        if self.trail.len() >= MAX_DEPTH {
            return Err(Refusal::Bad(format!("nested deeper than {MAX_DEPTH}")));
        }
        self.count(2)?;
        self.trail.push(object.clone());
        let json = match object.as_array() {
            Some(array) => self.items(array)?,
            None => self.members(&object)?,
        };
        self.trail.pop();
        Ok(json)
    }

    fn items(&mut self, array: &Array<'js>) -> Result<Json, Refusal> {
        let mut items = Vec::new();
        for index in 0..length(array)? {
            let item = self.value(&Key::Index(index), array.get(index)?)?;
            if item.is_none() {
                self.count(5)?;
            }
            items.push(item.unwrap_or(Json::Null));
        }
        Ok(Json::Array(items))
    }

    fn members(&mut self, object: &Object<'js>) -> Result<Json, Refusal> {
        let mut members = Map::new();
        for key in object.keys::<Atom<'js>>() {
            let key = key?;
            let value: Value<'js> = object.get(key.clone())?;
            if let Some(json) = self.value(&Key::Atom(&key), value)? {
                let name = text::of_key(&self.ctx, &key)?;
                self.count(name.len() + 4)?;
                members.insert(name, json);
            }
        }
        Ok(Json::Object(members))
    }
}

/// `Array::len` takes for granted that the length is a small integer.
fn length(array: &Array<'_>) -> rquickjs::Result<usize> {
    Ok(array.as_object().get::<_, f64>(PredefinedAtom::Length)? as usize)
}

fn json_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= MAX_WHOLE {
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
