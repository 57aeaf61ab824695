//! The access log: one line per request.

#![expect(clippy::disallowed_methods, reason = "the time of a log line")]

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use toolwright_contract::escape::escape;

use crate::log_buffer::LogBuffer;

/// The format of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLog {
    Off,
    Text,
    Json,
}

/// The start of every id of a confirmation request; a token is `<id>.<secret>`.
const CONFIRMATION_PREFIX: &str = "conf_";

/// A path that may be logged or quoted: a confirmation token in it is shortened to the id of its request.
pub(crate) fn without_secrets(path: &str) -> Cow<'_, str> {
    let id_of = |segment: &str| {
        let decoded = percent_decode_str(segment).decode_utf8_lossy();
        let start = decoded.find(CONFIRMATION_PREFIX)?;
        let end = start + decoded[start..].find('.')?;
        Some(decoded[..end].to_owned())
    };
    if path.split('/').all(|segment| id_of(segment).is_none()) {
        return path.into();
    }
    let segments = path.split('/').map(|segment| id_of(segment).map_or(segment.into(), Cow::Owned));
    segments.collect::<Vec<Cow<'_, str>>>().join("/").into()
}

/// One request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry<'a> {
    pub peer: &'a str,
    pub principal: &'a str,
    pub method: &'a str,
    /// Without the query and the secrets of confirmation tokens: see [`without_secrets`].
    pub path: &'a str,
    pub status: u16,
    /// `None` of a streamed response, which has just begun.
    pub bytes: Option<u64>,
    pub micros: u64,
    pub request_id: &'a str,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    timestamp: &'a str,
    level: &'static str,
    target: &'static str,
    #[serde(flatten)]
    entry: &'a Entry<'a>,
}

pub(crate) struct AccessLogger {
    format: AccessLog,
    lines: Arc<LogBuffer>,
}

impl AccessLogger {
    pub fn new(format: AccessLog, lines: Arc<LogBuffer>) -> Self {
        Self { format, lines }
    }

    pub fn write(&self, entry: &Entry<'_>) {
        if self.format == AccessLog::Off {
            return;
        }
        let now = DateTime::<Utc>::from(SystemTime::now());
        let timestamp = now.to_rfc3339_opts(SecondsFormat::Millis, true);
        self.lines.add_with(|lines| match self.format {
            AccessLog::Json => write_json(lines, &timestamp, entry),
            _ => write_text(lines, &timestamp, entry),
        });
    }
}

fn write_text(buffer: &mut Vec<u8>, timestamp: &str, entry: &Entry<'_>) {
    let Entry { peer, principal, method, path, status, bytes, micros, request_id } = entry;
    // Neither a token's subject nor a path may forge a line of the log.
    let (principal, path) = (escape(principal), escape(path));
    let bytes = bytes.map_or(Cow::Borrowed("-"), |bytes| bytes.to_string().into());
    // Writing to a `Vec` does not fail.
    let _ = writeln!(
        buffer,
        "{timestamp} {peer} {principal} {method} {path} {status} {bytes} {micros}us {request_id}"
    );
}

fn write_json(buffer: &mut Vec<u8>, timestamp: &str, entry: &Entry<'_>) {
    let line = JsonLine { timestamp, level: "INFO", target: "access", entry };
    let start = buffer.len();
    // Writing to a `Vec` does not fail, and every key is text.
    let _ = serde_json::to_writer(&mut *buffer, &line);
    // JSON itself escapes only some control characters.
    if let Ok(Cow::Owned(escaped)) = std::str::from_utf8(&buffer[start..]).map(escape) {
        buffer.truncate(start);
        buffer.extend_from_slice(escaped.as_bytes());
    }
    buffer.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMESTAMP: &str = "2026-01-01T00:00:00.005Z";
    const ENTRY: Entry<'_> = Entry {
        peer: "127.0.0.1:9",
        principal: "a\"b\\c\u{1}\u{202e}",
        method: "GET",
        path: "/v1/\"x\"\u{9b}\n",
        status: 200,
        bytes: Some(7),
        micros: 42,
        request_id: "req_1",
    };

    #[test]
    fn a_text_entry_is_one_line_whatever_its_values_contain() {
        let mut buffer = Vec::new();
        write_text(&mut buffer, TIMESTAMP, &ENTRY);
        write_text(&mut buffer, TIMESTAMP, &Entry { bytes: None, micros: 2_000_000, ..ENTRY });
        assert_eq!(
            String::from_utf8(buffer).unwrap(),
            "2026-01-01T00:00:00.005Z 127.0.0.1:9 a\"b\\c\\u0001\\u202e GET /v1/\"x\"\\u009b\\n 200 7 42us req_1\n\
             2026-01-01T00:00:00.005Z 127.0.0.1:9 a\"b\\c\\u0001\\u202e GET /v1/\"x\"\\u009b\\n 200 - 2000000us req_1\n"
        );
    }

    #[test]
    fn a_path_is_logged_without_the_secret_of_a_confirmation_token() {
        for (path, logged) in [
            ("/v1/confirmations/conf_a1.5ec4e7/approve", "/v1/confirmations/conf_a1/approve"),
            ("/confirmations/conf%5Fa1%2E5ec4e7/reject", "/confirmations/conf_a1/reject"),
            ("/v2/x%2Fconf_a1.5ec4e7", "/v2/x/conf_a1"),
            ("/v1/confirmations/conf_a1", "/v1/confirmations/conf_a1"),
            ("/images/a%20b.png", "/images/a%20b.png"),
        ] {
            assert_eq!(without_secrets(path), logged);
        }
    }

    #[test]
    fn a_json_entry_is_valid_json_whatever_its_values_contain() {
        let mut buffer = Vec::new();
        write_json(&mut buffer, TIMESTAMP, &ENTRY);
        assert_eq!(
            String::from_utf8(buffer).unwrap(),
            r#"{"timestamp":"2026-01-01T00:00:00.005Z","level":"INFO","target":"access","peer":"127.0.0.1:9","#
                .to_owned()
                + r#""principal":"a\"b\\c\u0001\u202e","method":"GET","path":"/v1/\"x\"\u009b\n","status":200,"bytes":7,"#
                + "\"micros\":42,\"requestId\":\"req_1\"}\n"
        );
    }
}
