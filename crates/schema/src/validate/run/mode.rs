//! The two ways to walk a value.

use serde_json::{Map, Value};

/// How a value is borrowed, and what is done besides deciding.
pub trait Mode {
    /// Whether to collect every error (and fill in defaults) or to stop at the first.
    const COLLECTS: bool;
    type Ref<'a>;

    fn get<'a>(data: &'a Self::Ref<'_>) -> &'a Value;
    fn again<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a>;
    fn member<'a>(data: &'a mut Self::Ref<'_>, name: &str) -> Option<Self::Ref<'a>>;
    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>>;
    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>>;
    /// Passes a value on that is not part of the data, as a property's name is.
    fn with<T>(value: Value, then: impl FnOnce(Self::Ref<'_>) -> T) -> T;
    fn object_to_fill<'a>(data: &'a mut Self::Ref<'_>) -> Option<&'a mut Map<String, Value>>;
    fn array_to_fill<'a>(data: &'a mut Self::Ref<'_>) -> Option<&'a mut Vec<Value>>;
}

pub enum Read {}

impl Mode for Read {
    const COLLECTS: bool = false;
    type Ref<'a> = &'a Value;

    fn get<'a>(data: &'a Self::Ref<'_>) -> &'a Value {
        data
    }

    fn again<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a> {
        data
    }

    fn member<'a>(data: &'a mut Self::Ref<'_>, name: &str) -> Option<Self::Ref<'a>> {
        data.get(name)
    }

    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>> {
        Some(data.as_object()?.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>> {
        data.as_array().map(Vec::as_slice).unwrap_or_default().iter()
    }

    fn with<T>(value: Value, then: impl FnOnce(Self::Ref<'_>) -> T) -> T {
        then(&value)
    }

    fn object_to_fill<'a>(_: &'a mut Self::Ref<'_>) -> Option<&'a mut Map<String, Value>> {
        None
    }

    fn array_to_fill<'a>(_: &'a mut Self::Ref<'_>) -> Option<&'a mut Vec<Value>> {
        None
    }
}

pub enum Fill {}

impl Mode for Fill {
    const COLLECTS: bool = true;
    type Ref<'a> = &'a mut Value;

    fn get<'a>(data: &'a Self::Ref<'_>) -> &'a Value {
        data
    }

    fn again<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a> {
        data
    }

    fn member<'a>(data: &'a mut Self::Ref<'_>, name: &str) -> Option<Self::Ref<'a>> {
        data.get_mut(name)
    }

    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>> {
        Some(data.as_object_mut()?.iter_mut().map(|(name, value)| (name.as_str(), value)))
    }

    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>> {
        data.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default().iter_mut()
    }

    fn with<T>(mut value: Value, then: impl FnOnce(Self::Ref<'_>) -> T) -> T {
        then(&mut value)
    }

    fn object_to_fill<'a>(data: &'a mut Self::Ref<'_>) -> Option<&'a mut Map<String, Value>> {
        data.as_object_mut()
    }

    fn array_to_fill<'a>(data: &'a mut Self::Ref<'_>) -> Option<&'a mut Vec<Value>> {
        data.as_array_mut()
    }
}
