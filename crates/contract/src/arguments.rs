//! Reads the arguments of a call from JSON. A name that is given twice in an object is refused: readers differ in which
//! of the two values they take.

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

/// Refuses JSON text with a whole number that needs more than 64 bits: it would be read as the nearest float.
///
/// # Errors
/// The message names the number.
pub fn check_integers(text: &[u8]) -> Result<(), String> {
    if !has_long_digits(text) {
        return Ok(());
    }
    tokens(text).try_for_each(check_integer)
}

/// JSON text in which whole numbers that need more than 64 bits are strings, so that none is rounded. `None` if there
/// are none.
pub fn quote_long_integers(text: &str) -> Option<String> {
    check_integers(text.as_bytes()).err()?;
    let mut quoted = Vec::with_capacity(text.len() + 2);
    for token in tokens(text.as_bytes()) {
        let quote: &[u8] = if check_integer(token).is_err() { b"\"" } else { b"" };
        quoted.extend_from_slice(quote);
        quoted.extend_from_slice(token);
        quoted.extend_from_slice(quote);
    }
    String::from_utf8(quoted).ok()
}

/// The strings and numbers of a JSON text, and its other bytes one by one.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = match rest.first()? {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())
            }
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// Whether there are enough consecutive digits for a whole number beyond 64 bits. Any such run covers a multiple of its
/// length, so only those places are looked at.
fn has_long_digits(text: &[u8]) -> bool {
    const DIGITS: usize = 19;
    (DIGITS - 1..text.len()).step_by(DIGITS).any(|place| {
        let before = text[..place].iter().rev().take(DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
        let after = text[place..].iter().take(DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
        after > 0 && before + after >= DIGITS
    })
}

/// The length of the JSON string at the begin of the text, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// A token that is no number passes.
fn check_integer(number: &[u8]) -> Result<(), String> {
    if !number.first().is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9')) {
        return Ok(());
    }
    let text = std::str::from_utf8(number).unwrap_or_default();
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if !is_whole || text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok() {
        return Ok(());
    }
    Err(format!("the whole number {text:.40} needs more than 64 bits; send it as a string"))
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
    fn whole_numbers_beyond_64_bits_become_strings() {
        let text = r#"{"id": 123456789012345678901, "n": [-9999999999999999999, 7, 1.5e30], "s": "123456789012345678901"}"#;
        let quoted = quote_long_integers(text).unwrap();
        let expected = r#"{"id": "123456789012345678901", "n": ["-9999999999999999999", 7, 1.5e30], "s": "123456789012345678901"}"#;
        assert_eq!(quoted, expected);
        assert_eq!(quote_long_integers(r#"{"id": 18446744073709551615, "é": "1"}"#), None);
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_at_any_depth() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"x": {"a": 1, "b": 2, "a": 3}}]"#] {
            assert!(read(text).unwrap_err().to_string().contains("`a` is given twice"), "{text}");
        }
    }

    #[test]
    fn whole_numbers_beyond_64_bits_are_refused_wherever_they_are() {
        for text in [
            "18446744073709551616",
            r#"{"a": [1, {"b": -9223372036854775809}]}"#,
            r#"{"text": "1\\", "n": 100000000000000000000000000000}"#,
        ] {
            let message = check_integers(text.as_bytes()).unwrap_err();
            assert!(message.contains("needs more than 64 bits"), "{message}");
        }
        for text in [
            "18446744073709551615",
            "[-9223372036854775808, 9007199254740993]",
            "18446744073709551616.0",
            "[1e300, 0.1234567890123456789012345]",
            r#"{"id": "18446744073709551616", "18446744073709551616": "\"18446744073709551616"}"#,
            r#"{"unclosed": "18446744073709551616"#,
            "",
        ] {
            assert_eq!(check_integers(text.as_bytes()), Ok(()), "{text}");
        }
        for padding in 0..40 {
            let text = format!("{}18446744073709551616{}", " ".repeat(padding), " ".repeat(40 - padding));
            assert!(check_integers(text.as_bytes()).is_err(), "{padding}");
        }
    }

    #[test]
    fn only_an_object_is_accepted_as_arguments() {
        let read = |text| members(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"a": 1}"#).unwrap().len(), 1);
        assert!(read("[]").is_err() && read("null").is_err());
    }
}
