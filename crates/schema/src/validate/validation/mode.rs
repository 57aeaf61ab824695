//! The two modes of a validation. One implementation of the keywords serves both.

use std::ops::Deref;

use serde_json::Value;

/// How a value is borrowed, and whether errors are collected.
pub trait Mode {
    /// Whether to collect every error and fill in defaults, or to stop at the first failure.
    const COLLECTS: bool;
    type Ref<'a>: Deref<Target = Value>;

    fn reborrow<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a>;
    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>>;
    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>>;

    /// The value, if defaults are filled in.
    fn to_fill<'a>(_data: &'a mut Self::Ref<'_>) -> Option<&'a mut Value> {
        None
    }

    /// Checks a further keyword, unless the value is known to be invalid and that decides.
    fn and(is_valid: bool, check: impl FnOnce() -> bool) -> bool {
        if is_valid || Self::COLLECTS { check() & is_valid } else { false }
    }

    /// Checks one after the other, until one fails and that decides.
    fn all<T>(mut all: impl Iterator<Item = T>, mut check: impl FnMut(T) -> bool) -> bool {
        if Self::COLLECTS { all.fold(true, |is_valid, one| check(one) & is_valid) } else { all.all(check) }
    }
}

/// Decides only, and stops at the first failure.
pub enum CheckOnly {}

impl Mode for CheckOnly {
    const COLLECTS: bool = false;
    type Ref<'a> = &'a Value;

    fn reborrow<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a> {
        data
    }

    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>> {
        Some(data.as_object()?.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>> {
        data.as_array().map(Vec::as_slice).unwrap_or_default().iter()
    }
}

/// Fills in defaults and collects every error.
pub enum FillAndCollect {}

impl Mode for FillAndCollect {
    const COLLECTS: bool = true;
    type Ref<'a> = &'a mut Value;

    fn reborrow<'a>(data: &'a mut Self::Ref<'_>) -> Self::Ref<'a> {
        data
    }

    fn members<'a>(data: &'a mut Self::Ref<'_>) -> Option<impl Iterator<Item = (&'a str, Self::Ref<'a>)>> {
        Some(data.as_object_mut()?.iter_mut().map(|(name, value)| (name.as_str(), value)))
    }

    fn items<'a>(data: &'a mut Self::Ref<'_>) -> impl Iterator<Item = Self::Ref<'a>> {
        data.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default().iter_mut()
    }

    fn to_fill<'a>(data: &'a mut Self::Ref<'_>) -> Option<&'a mut Value> {
        Some(data)
    }
}
