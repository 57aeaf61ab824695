//! Audit entries of one row, one JSON text a line, as one SQL value: LZ4 if there are many (see
//! `docs/decisions/0007-the-embedded-store.md`), readable text otherwise.

use rusqlite::types::{FromSqlError, ToSqlOutput, Value, ValueRef};

/// Shorter texts are not compressed.
const MIN_COMPRESSED_BYTES: usize = 2048;
/// Longer texts are not compressed, so a value that claims to be longer is corrupt.
const MAX_COMPRESSED_BYTES: usize = 64 << 20;

pub fn compress(text: String) -> ToSqlOutput<'static> {
    let value = if (MIN_COMPRESSED_BYTES..=MAX_COMPRESSED_BYTES).contains(&text.len()) {
        Value::Blob(lz4_flex::compress_prepend_size(text.as_bytes()))
    } else {
        Value::Text(text)
    };
    ToSqlOutput::Owned(value)
}

pub fn decompress(value: ValueRef<'_>) -> Result<String, FromSqlError> {
    let ValueRef::Blob(bytes) = value else { return value.as_str().map(str::to_owned) };
    let other = |cause: Box<dyn std::error::Error + Send + Sync>| FromSqlError::Other(cause);
    let (size, compressed) =
        lz4_flex::block::uncompressed_size(bytes).map_err(|error| other(error.into()))?;
    if size > MAX_COMPRESSED_BYTES {
        let error = format!("compressed audit entries claim {size} bytes, more than {MAX_COMPRESSED_BYTES}");
        return Err(other(error.into()));
    }
    let text = lz4_flex::decompress(compressed, size).map_err(|error| other(error.into()))?;
    String::from_utf8(text).map_err(|error| other(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(text: &str) -> Value {
        match compress(text.to_owned()) {
            ToSqlOutput::Owned(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_round_trip_and_long_ones_are_compressed() {
        let many =
            (0..200).map(|at| format!("{{\"at\":{at},\"event\":\"called\"}}")).collect::<Vec<_>>().join("\n");
        for text in ["", "one", &many] {
            assert_eq!(decompress(ValueRef::from(&compressed(text))).unwrap(), text);
        }
        assert!(matches!(compressed("one"), Value::Text(_)));
        assert!(matches!(compressed(&many), Value::Blob(bytes) if bytes.len() < many.len() / 3));
    }

    #[test]
    fn corrupt_values_are_errors() {
        let Value::Blob(valid) = compressed(&"a line of the audit\n".repeat(200)) else { panic!("a text") };
        let huge = [&u32::MAX.to_le_bytes()[..], &valid[4..]].concat();
        let truncated = &valid[..valid.len() / 2];
        for bytes in [&b""[..], b"abc", truncated, &huge, &[4, 0, 0, 0, 0xff, 0xff, 0xff]] {
            assert!(decompress(ValueRef::Blob(bytes)).is_err());
        }
    }
}
