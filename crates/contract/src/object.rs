//! Structs that are read from objects only. What serde derives for a struct also reads an array, by the order of its
//! fields.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that is read from an object, never from an array.
#[derive(Debug)]
pub struct ObjectOnly<T>(pub T);

/// For `#[serde(deserialize_with)]`: reads a struct from an object only.
pub fn only<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    ObjectOnly::deserialize(deserializer).map(|ObjectOnly(value)| value)
}

/// As [`only`], for a field that may be null.
pub fn only_some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let given = Option::<ObjectOnly<T>>::deserialize(deserializer)?;
    Ok(given.map(|ObjectOnly(value)| value))
}

/// As [`only`], for a list of objects.
pub fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<ObjectOnly<T>>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|ObjectOnly(value)| value).collect())
}

/// As [`only`], for a map whose values are objects.
pub fn each_member<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let all = BTreeMap::<String, ObjectOnly<T>>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|(name, ObjectOnly(value))| (name, value)).collect())
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = ObjectOnly<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ObjectOnly<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(ObjectOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer<'a> {
        name: &'a str,
        #[serde(default, deserialize_with = "only_some")]
        inner: Option<Inner>,
        #[serde(default, deserialize_with = "each")]
        list: Vec<Inner>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        count: u8,
    }

    fn read(text: &str) -> Result<Outer<'_>, String> {
        let read = serde_json::from_str::<ObjectOnly<Outer<'_>>>(text);
        read.map(|ObjectOnly(outer)| outer).map_err(|error| error.to_string())
    }

    #[test]
    fn an_object_is_read_and_an_array_is_refused() {
        assert_eq!(read(r#"{"name": "a"}"#), Ok(Outer { name: "a", inner: None, list: vec![] }));
        let whole = Outer { name: "a", inner: Some(Inner { count: 3 }), list: vec![Inner { count: 4 }] };
        assert_eq!(read(r#"{"name": "a", "inner": {"count": 3}, "list": [{"count": 4}]}"#), Ok(whole));
        assert_eq!(read(r#"{"name": "a", "inner": null}"#).unwrap().inner, None);
        for text in [r#"["a"]"#, r#"{"name": "a", "inner": [3]}"#, r#"{"name": "a", "list": [[3]]}"#] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("invalid type: sequence, expected an object"), "{error}");
        }
        assert!(read(r#"{"name": "a", "other": 1}"#).unwrap_err().contains("unknown field `other`"));
    }
}
