//! Canonical JSON (RFC 8785).

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Appends the canonical form: members sorted by UTF-16 code units, numbers as ECMAScript writes them. Two documents
/// with the same meaning have the same canonical bytes.
pub fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by(|a, b| utf16_order(a.0, b.0));
            out.push(b'{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_serialized(name, out);
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Number(number) => out.extend_from_slice(canonical_number(number).as_bytes()),
        // serde_json escapes strings as RFC 8785 does.
        Value::Null | Value::Bool(_) | Value::String(_) => write_serialized(value, out),
    }
}

fn utf16_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// `Number::toString` of ECMAScript, for the finite numbers that JSON has.
fn canonical_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let magnitude = float.abs();
    if float == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e21).contains(&magnitude) {
        float.to_string()
    } else if magnitude >= 1e21 {
        // Rust writes `1e21`, ECMAScript `1e+21`.
        format!("{float:e}").replacen('e', "e+", 1)
    } else {
        format!("{float:e}")
    }
}

/// The first whole number that a double, and so JavaScript, cannot hold exactly: its place as a JSON pointer, and the
/// number.
pub fn inexact_integer(value: &Value) -> Option<(String, &Number)> {
    match value {
        Value::Number(number) => (!fits_double(number)).then(|| (String::new(), number)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            inexact_integer(item).map(|(place, number)| (format!("/{index}{place}"), number))
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let (place, number) = inexact_integer(member)?;
            Some((format!("/{}{place}", name.replace('~', "~0").replace('/', "~1")), number))
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// Whether a double holds the number exactly.
pub fn fits_double(number: &Number) -> bool {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // An integer of 64 bits is far within the range of a double.
    whole.is_none_or(|whole| whole as f64 as i128 == whole)
}

/// Appends what serde_json writes. Writing to memory does not fail.
pub(crate) fn write_serialized(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_that_a_double_rounds_are_found() {
        let exact = [0, 1 << 53, -(1 << 53), (1 << 53) + 2, 1 << 62, i64::MIN];
        assert_eq!(inexact_integer(&json!([exact, 9_223_372_036_854_775_808_u64, 1e300, 0.1, "x"])), None);
        for number in [json!((1_i64 << 53) + 1), json!(-(1_i64 << 53) - 1), json!(i64::MAX), json!(u64::MAX)]
        {
            let value = json!({ "a": 1, "b/~": [0, { "c": number }] });
            let (place, found) = inexact_integer(&value).unwrap();
            assert_eq!((place.as_str(), &Value::Number(found.clone())), ("/b~1~0/1/c", &number));
        }
    }
}
