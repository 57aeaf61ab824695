//! Canonical JSON (RFC 8785).

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Appends the canonical form: members sorted by UTF-16 code units, numbers as ECMAScript writes them. Two documents with
/// the same meaning have the same canonical bytes.
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

/// Appends what serde_json writes. Writing to memory does not fail.
pub(crate) fn write_serialized(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}
