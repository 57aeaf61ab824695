//! How the arguments of a call are read from JSON.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// An object has room for so many members before it grows: there are seldom more, and defaults are filled in later.
const ROOM: usize = 7;
/// So many objects have that room. More are no arguments that anybody writes by hand, and would take more memory than text.
const MOST_WITH_ROOM: usize = 64;

/// A value in which no object has a name twice, which is an error: readers differ in which of the two they take.
pub fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Unambiguous { with_room: &Cell::new(MOST_WITH_ROOM) }.deserialize(from)
}

/// As [`value`], of an object.
pub fn members<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    match value(from)? {
        Value::Object(members) => Ok(members),
        _ => Err(D::Error::custom("arguments are an object")),
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
struct Unambiguous<'r> {
    /// How many objects still get room.
    with_room: &'r Cell<usize>,
}

impl Unambiguous<'_> {
    /// For an object that has a member.
    fn members(self) -> Map<String, Value> {
        match self.with_room.get() {
            0 => Map::new(),
            left => {
                self.with_room.set(left - 1);
                Map::with_capacity(ROOM)
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Unambiguous<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous<'_> {
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
            if all.is_empty() {
                all = self.members();
            }
            let value = members.next_value_seed(self)?;
            match all.entry(name) {
                Entry::Vacant(place) => _ = place.insert(value),
                Entry::Occupied(place) => {
                    return Err(A::Error::custom(format_args!("`{}` is there twice", place.key())));
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
    fn a_name_that_is_there_twice_is_refused_at_any_depth() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"x": {"a": 1, "b": 2, "a": 3}}]"#] {
            assert!(read(text).unwrap_err().to_string().contains("`a` is there twice"), "{text}");
        }
    }

    #[test]
    fn only_an_object_has_members() {
        let of = |text| members(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(of(r#"{"a": 1}"#).unwrap().len(), 1);
        assert!(of("[]").is_err() && of("null").is_err());
    }
}
