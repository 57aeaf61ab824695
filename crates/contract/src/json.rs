//! Writes JSON: compact, with the bytes of serde_json, or canonical (RFC 8785). Every call writes several documents, so
//! strings are scanned for escapes in blocks rather than byte by byte.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Bytes of a string that are scanned together.
const BLOCK_BYTES: usize = 16;

#[derive(Clone, Copy)]
enum Form {
    Compact,
    Canonical,
}

/// Appends the value as serde_json writes it.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    write(value, Form::Compact, out);
}

/// Appends the canonical form (RFC 8785): members sorted by UTF-16 code units, numbers as ECMAScript writes them. Two
/// documents with the same meaning have the same canonical bytes.
pub fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    write(value, Form::Canonical, out);
}

fn write(value: &Value, form: Form, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match form {
            Form::Compact => write_serialized(number, out),
            Form::Canonical => out.extend_from_slice(canonical_number(number).as_bytes()),
        },
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, form, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            match form {
                Form::Compact => write_members(members, out),
                Form::Canonical => {
                    let mut sorted: Vec<_> = members.iter().collect();
                    sorted.sort_unstable_by(|a, b| utf16_order(a.0, b.0));
                    write_each(sorted, form, out);
                }
            }
            out.push(b'}');
        }
    }
}

/// Appends members without the braces around them.
pub(crate) fn write_members(members: &Map<String, Value>, out: &mut Vec<u8>) {
    write_each(members, Form::Compact, out);
}

fn write_each<'a>(members: impl IntoIterator<Item = (&'a String, &'a Value)>, form: Form, out: &mut Vec<u8>) {
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write(value, form, out);
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

/// Appends a string in quotation marks, escaped as both serde_json and RFC 8785 do.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for block in text.as_bytes().chunks(BLOCK_BYTES) {
        if has_escapes(block) {
            block.iter().for_each(|byte| write_byte(*byte, out));
        } else {
            out.extend_from_slice(block);
        }
    }
    out.push(b'"');
}

fn write_byte(byte: u8, out: &mut Vec<u8>) {
    let escape = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0..b' ' => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        _ => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', escape]);
}

/// Without branches, so that the compiler vectorizes it.
fn has_escapes(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |found, byte| found | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\'))
}

/// Appends what serde_json writes. Writing to memory does not fail.
pub fn write_serialized<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compact_json_has_the_bytes_of_serde_json() {
        let mut texts: Vec<String> = (0..40).map(|length| "x".repeat(length)).collect();
        for special in
            ["\"", "\\", "\n\t\r", "\u{8}\u{c}\u{b}", "\u{0}", "\u{1f}", " ", "\u{7f}", "\u{2028}", "é", "🦀"]
        {
            texts.extend((0..34).map(|at| format!("{}{special}{}", "a".repeat(at), "b".repeat(33 - at))));
        }
        let mut values: Vec<Value> = texts.into_iter().map(Value::String).collect();
        values.extend([
            json!(null),
            json!(true),
            json!(-3),
            json!(u64::MAX),
            json!(0.1),
            json!(1e300),
            json!([]),
        ]);
        values.push(json!({ "a\"b": [1, { "c": {} }, "d"], "": [[]], "e": false }));
        values.push(Value::Array(values.clone()));
        for value in values {
            let mut written = Vec::new();
            write_value(&value, &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), value.to_string());
        }
    }
}
