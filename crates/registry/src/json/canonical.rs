//! Canonical JSON (RFC 8785): members sorted by UTF-16 code units, no white space, numbers as ECMAScript
//! prints them. Two documents with the same meaning have the same canonical bytes.

use serde_json::Value;
// It escapes exactly as RFC 8785 asks.
use toolwright_contract::json::write_string;

/// Appends the canonical form of `value`.
pub fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
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
            for (index, (key, item)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_canonical(item, out);
            }
            out.push(b'}');
        }
    }
}

fn utf16_order(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_number(number: &serde_json::Number, out: &mut Vec<u8>) {
    let text = match number.as_f64() {
        Some(float) if number.is_f64() => ecmascript(float),
        _ => number.to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// `Number::toString` of ECMAScript for a finite number.
fn ecmascript(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    let magnitude = float.abs();
    if (1e-6..1e21).contains(&magnitude) {
        return format!("{float}");
    }
    // Rust prints `1e21` and `1.5e-7`; ECMAScript wants a plus sign on positive exponents.
    let text = format!("{float:e}");
    if magnitude >= 1e21 { text.replacen('e', "e+", 1) } else { text }
}
