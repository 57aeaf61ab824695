//! Many lines of the audit as one value: they repeat each other, so a fifth of the bytes says the same. Few lines stay a text that
//! anybody reads.

use rusqlite::types::{FromSqlError, ToSqlOutput, Value, ValueRef};

/// Shorter texts are kept as they are.
const SHORT: usize = 2048;
/// More lines than a row has, of any length: what claims to be longer was not written here.
const MOST: usize = 64 << 20;

/// Lines as they are kept.
pub fn packed(text: String) -> ToSqlOutput<'static> {
    let is_short = text.len() < SHORT || text.len() > MOST;
    let value = if is_short {
        Value::Text(text)
    } else {
        Value::Blob(lz4_flex::compress_prepend_size(text.as_bytes()))
    };
    ToSqlOutput::Owned(value)
}

/// The lines of what was kept.
pub fn unpacked(kept: ValueRef<'_>) -> Result<String, FromSqlError> {
    let ValueRef::Blob(bytes) = kept else { return kept.as_str().map(str::to_owned) };
    let other = |cause: Box<dyn std::error::Error + Send + Sync>| FromSqlError::Other(cause);
    let (size, packed) = lz4_flex::block::uncompressed_size(bytes).map_err(|error| other(error.into()))?;
    if size > MOST {
        return Err(other("the lines of the audit are longer than any that are written".into()));
    }
    let text = lz4_flex::decompress(packed, size).map_err(|error| other(error.into()))?;
    String::from_utf8(text).map_err(|error| other(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Value {
        match packed(text.to_owned()) {
            ToSqlOutput::Owned(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_come_back_and_many_take_less_room() {
        let many =
            (0..200).map(|at| format!("{{\"at\":{at},\"event\":\"called\"}}")).collect::<Vec<_>>().join("\n");
        for text in ["", "one", &many] {
            assert_eq!(unpacked(ValueRef::from(&kept(text))).unwrap(), text);
        }
        assert!(matches!(kept("one"), Value::Text(_)));
        assert!(matches!(kept(&many), Value::Blob(bytes) if bytes.len() < many.len() / 3));
    }

    #[test]
    fn what_was_not_written_here_is_an_error() {
        let Value::Blob(sound) = kept(&"a line of the audit\n".repeat(200)) else { panic!("a text") };
        let huge = [&u32::MAX.to_le_bytes()[..], &sound[4..]].concat();
        let cut = &sound[..sound.len() / 2];
        for bytes in [&b""[..], b"abc", cut, &huge, &[4, 0, 0, 0, 0xff, 0xff, 0xff]] {
            assert!(unpacked(ValueRef::Blob(bytes)).is_err());
        }
    }
}
