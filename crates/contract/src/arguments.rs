//! Reads the arguments of a call from JSON. A name that is given twice in an object is refused: readers differ in which of
//! the two values they take.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Reads a value in which no object, at any depth, has a name twice.
pub fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    UniqueNames.deserialize(deserializer)
}

/// As [`value`], for an object.
pub fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match value(deserializer)? {
        Value::Object(members) => Ok(members),
        _ => Err(D::Error::custom("arguments must be an object")),
    }
}

#[derive(Clone, Copy)]
struct UniqueNames;

impl<'de> DeserializeSeed<'de> for UniqueNames {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            match all.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(value),
                Entry::Occupied(entry) => {
                    return Err(A::Error::custom(format_args!("`{}` is given twice", entry.key())));
                }
            }
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        value(&mut serde_json::Deserializer::from_str(text))
    }

    #[test]
    fn a_value_is_read_as_serde_json_reads_it() {
        for text in [
            r#"{"a": [1, -2, 3.5, 1e300, 18446744073709551616, true, null, "\u00e9\n", {}], "b": {"c": {}}, "": []}"#,
            "7",
            "1e400",
            "\"text\"",
            "null",
            r#"{"a": 1,}"#,
            "[1",
        ] {
            let wanted = serde_json::from_str::<Value>(text);
            assert_eq!(read(text).ok(), wanted.ok(), "{text}");
        }
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_at_any_depth() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"x": {"a": 1, "b": 2, "a": 3}}]"#] {
            assert!(read(text).unwrap_err().to_string().contains("`a` is given twice"), "{text}");
        }
    }

    #[test]
    fn only_an_object_is_accepted_as_arguments() {
        let read = |text| members(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"a": 1}"#).unwrap().len(), 1);
        assert!(read("[]").is_err() && read("null").is_err());
    }
}
