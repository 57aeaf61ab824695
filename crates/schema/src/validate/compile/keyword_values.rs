//! Reads keyword values; fails when a value has the wrong form. Booleans that older drafts allowed for limits are
//! ignored.

use serde_json::{Map, Number, Value};

use super::Result;
use crate::keyword::{Keyword, Keywords};
use crate::types::TypeSet;
use crate::validate::CompileError;
use crate::validate::compiled_schema::Names;

fn wrong(keyword: Keyword, wanted: &str) -> CompileError {
    CompileError::new(format!("`{}` must be {wanted}", keyword.name()))
}

pub fn names(value: &Value, keyword: Keyword) -> Result<Names> {
    let items = value.as_array().ok_or_else(|| wrong(keyword, "an array"))?;
    let name = |item: &Value| item.as_str().map(Into::into);
    items.iter().map(|item| name(item).ok_or_else(|| wrong(keyword, "an array of strings"))).collect()
}

/// `type` and `nullable` together.
pub struct DeclaredTypes {
    pub types: TypeSet,
    /// How many names there are, repeated ones included.
    count: usize,
}

impl<'s> Keywords<'s> {
    fn convert<T>(
        &self,
        keyword: Keyword,
        wanted: &str,
        convert: impl FnOnce(&'s Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.get(keyword).map(|value| convert(value).ok_or_else(|| wrong(keyword, wanted))).transpose()
    }

    pub fn number(&self, keyword: Keyword) -> Result<Option<Number>> {
        if self.get(keyword).is_some_and(Value::is_boolean) {
            return Ok(None);
        }
        self.convert(keyword, "a number", |value| value.as_number().cloned())
    }

    pub fn text(&self, keyword: Keyword) -> Result<Option<&'s str>> {
        self.convert(keyword, "a string", Value::as_str)
    }

    pub fn object(&self, keyword: Keyword) -> Result<Option<&'s Map<String, Value>>> {
        self.convert(keyword, "an object", Value::as_object)
    }

    pub fn array(&self, keyword: Keyword) -> Result<Option<&'s Vec<Value>>> {
        self.convert(keyword, "an array", Value::as_array)
    }

    pub fn types(&self) -> Result<DeclaredTypes> {
        let mut declared = DeclaredTypes { types: TypeSet::NONE, count: 0 };
        for name in self.type_names() {
            let named = TypeSet::from_name(name.as_str().unwrap_or_default());
            if named.is_empty() {
                return Err(CompileError::new(format!(
                    "`type` must be a type name or a list of them, got {name}"
                )));
            }
            declared.types = declared.types.with(named);
            declared.count += 1;
        }
        let is_nullable = self.get(Keyword::Nullable) == Some(&Value::Bool(true));
        if is_nullable && declared.count > 0 && !declared.types.intersects(TypeSet::NULL) {
            declared.types = declared.types.with(TypeSet::NULL);
            declared.count += 1;
        }
        Ok(declared)
    }

    /// `type` as errors show it: Ajv adds the null of `nullable` to a list, not to a single name.
    pub fn type_in_errors(&self, types: TypeSet) -> Option<Box<Value>> {
        let mut value = self.get(Keyword::Type)?.clone();
        if let Value::Array(names) = &mut value
            && types.intersects(TypeSet::NULL)
            && !names.iter().any(|name| name == "null")
        {
            names.push(Value::from("null"));
        }
        Some(Box::new(value))
    }
}

impl DeclaredTypes {
    /// A single type is checked with the keywords for that type, if there are any.
    pub fn are_checked_first(&self, keywords: &Keywords<'_>) -> bool {
        let has_group = !matches!(self.types, TypeSet::INTEGER | TypeSet::BOOLEAN | TypeSet::NULL)
            && keywords.has_any_for(self.types);
        self.count != 1 || !has_group
    }
}
