//! Values of keywords, read with a complaint when they are not what the keyword takes. Booleans
//! where older drafts allowed them are passed over.

use serde_json::{Map, Number, Value};

use super::Done;
use super::keyword::Keywords;
use crate::validate::CompileError;
use crate::validate::node::{Names, Types};

fn wrong(keyword: &str, wanted: &str) -> CompileError {
    CompileError::new(format!("{keyword} value must be {wanted}"))
}

pub fn number(value: Option<&Value>, keyword: &str) -> Done<Option<Number>> {
    match value {
        None | Some(Value::Bool(_)) => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(wrong(keyword, "number")),
    }
}

pub fn text<'s>(value: Option<&'s Value>, keyword: &str) -> Done<Option<&'s str>> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(keyword, "string")),
    }
}

pub fn object<'s>(value: Option<&'s Value>, keyword: &str) -> Done<Option<&'s Map<String, Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong(keyword, "object")),
    }
}

pub fn array<'s>(value: Option<&'s Value>, keyword: &str) -> Done<Option<&'s Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(wrong(keyword, "array")),
    }
}

pub fn names(value: &Value, keyword: &str) -> Done<Names> {
    let items = array(Some(value), keyword)?.map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .map(|item| item.as_str().map(Into::into).ok_or_else(|| wrong(keyword, "array of strings")))
        .collect()
}

/// Members in the order in which JavaScript visits them: names that are indices come first.
pub fn in_order(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = object.iter().collect();
    if object.keys().any(|name| crate::validate::run::array_index(name).is_some()) {
        members.sort_by_key(|(name, _)| crate::validate::run::array_index(name).unwrap_or(u32::MAX));
    }
    members
}

/// The types a schema names, and how many it names.
pub struct Named {
    pub types: Types,
    count: usize,
}

pub fn types(words: &Keywords<'_>) -> Done<Named> {
    let mut named = Named { types: Types::default(), count: 0 };
    let listed = match words.kind {
        None => &[][..],
        Some(Value::Array(items)) => items.as_slice(),
        Some(single) => std::slice::from_ref(single),
    };
    for item in listed {
        let name = item.as_str().unwrap_or_default();
        let bit = Types::named(name)
            .ok_or_else(|| CompileError::new(format!("type must be JSONType or JSONType[]: {name}")))?;
        named.types.0 |= bit;
        named.count += 1;
    }
    let nullable = words.nullable == Some(&Value::Bool(true));
    if nullable && named.count > 0 && named.types.0 & Types::NULL == 0 {
        named.types.0 |= Types::NULL;
        named.count += 1;
    }
    Ok(named)
}

/// `type` as errors show it: Ajv adds the null of `nullable` to a list, not to a single name.
pub fn type_as_reported(words: &Keywords<'_>, types: Types) -> Option<Box<Value>> {
    let mut kind = words.kind?.clone();
    if let Value::Array(names) = &mut kind
        && types.0 & Types::NULL != 0
        && !names.iter().any(|name| name == "null")
    {
        names.push(Value::from("null"));
    }
    Some(Box::new(kind))
}

impl Named {
    /// A single type is left to the keywords for that type, if there are any.
    pub fn are_checked_first(&self, words: &Keywords<'_>) -> bool {
        let has_group = match self.types.0 {
            Types::NUMBER => words.are_for_numbers(),
            Types::STRING => words.are_for_strings(),
            Types::ARRAY => words.are_for_arrays(),
            Types::OBJECT => words.are_for_objects(),
            _ => false,
        };
        self.count != 1 || !has_group
    }
}
