//! The access log: a line a request, to stderr. Lines are gathered and written a few times a second, so that a request
//! does not pay for a system call of its own.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often gathered lines are written.
pub(crate) const EVERY: Duration = Duration::from_millis(200);
/// Gathered lines are written at once when there are more.
const FULL: usize = 64 << 10;

/// The form of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLog {
    Off,
    Text,
    Json,
}

/// One line.
pub(crate) struct Line<'a> {
    pub request_id: &'a str,
    pub peer: &'a str,
    pub principal: &'a str,
    pub method: &'a str,
    /// Without its query, which may hold what must not be kept.
    pub path: &'a str,
    pub status: u16,
    pub bytes: u64,
    pub took: Duration,
}

pub(crate) struct Log {
    form: AccessLog,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    text: String,
    /// The second that `stamp` is of.
    second: u64,
    stamp: String,
}

impl Log {
    pub fn new(form: AccessLog) -> Self {
        Self { form, gathered: Mutex::default() }
    }

    pub fn write(&self, line: &Line<'_>) {
        if self.form == AccessLog::Off {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut gathered = self.locked();
        if gathered.second != now.as_secs() || gathered.stamp.is_empty() {
            gathered.second = now.as_secs();
            let at = chrono::DateTime::from_timestamp(i64::try_from(now.as_secs()).unwrap_or(0), 0);
            gathered.stamp = at.unwrap_or_default().format("%Y-%m-%dT%H:%M:%S").to_string();
        }
        let Gathered { text, stamp, .. } = &mut *gathered;
        match self.form {
            // Writing to a text does not fail.
            AccessLog::Json => drop(json(text, stamp, now.subsec_millis(), line)),
            _ => plain(text, stamp, now.subsec_millis(), line),
        }
        if text.len() >= FULL {
            out(text);
        }
    }

    /// Writes what has been gathered.
    pub fn flush(&self) {
        out(&mut self.locked().text);
    }

    fn locked(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn out(text: &mut String) {
    if !text.is_empty() {
        // A log that cannot be written has nowhere to say so.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        text.clear();
    }
}

fn plain(text: &mut String, stamp: &str, millis: u32, line: &Line<'_>) {
    let Line { request_id, peer, principal, method, path, status, bytes, took } = line;
    // A name of a token must not look like a line of the log.
    let principal = match principal.contains(char::is_control) {
        true => Cow::Owned(principal.replace(char::is_control, "?")),
        false => Cow::Borrowed(*principal),
    };
    // Put together by hand: formatting would cost a request more than the rest of its log line.
    text.push_str(stamp);
    text.push('.');
    padded(text, u64::from(millis), 3);
    for part in ["Z ", peer, " ", &principal, " ", method, " ", path, " "] {
        text.push_str(part);
    }
    padded(text, u64::from(*status), 1);
    text.push(' ');
    padded(text, *bytes, 1);
    text.push(' ');
    padded(text, u64::try_from(took.as_micros()).unwrap_or(u64::MAX), 1);
    for part in ["us ", request_id, "\n"] {
        text.push_str(part);
    }
}

/// A number, with zeros before it if it has fewer digits.
fn padded(text: &mut String, number: u64, digits: u32) {
    let mut place = 10_u64.pow(number.checked_ilog10().unwrap_or(0).max(digits - 1));
    while place > 0 {
        text.push(char::from(b'0' + (number / place % 10) as u8));
        place /= 10;
    }
}

/// Ids, methods and paths that reached us have nothing in them that JSON escapes, except what `quoted` sees to.
fn json(text: &mut String, stamp: &str, millis: u32, line: &Line<'_>) -> std::fmt::Result {
    let Line { request_id, peer, principal, method, path, status, bytes, took } = line;
    write!(
        text,
        r#"{{"timestamp":"{stamp}.{millis:03}Z","level":"INFO","target":"access","peer":"{peer}","principal":"#
    )?;
    quoted(text, principal)?;
    write!(text, r#","method":"{method}","path":"#)?;
    quoted(text, path)?;
    let took = took.as_micros();
    writeln!(text, r#","status":{status},"bytes":{bytes},"micros":{took},"requestId":"{request_id}"}}"#)
}

fn quoted(text: &mut String, value: &str) -> std::fmt::Result {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            control if control.is_control() => write!(text, "\\u{:04x}", u32::from(control))?,
            other => text.push(other),
        }
    }
    text.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line<'_> = Line {
        request_id: "req_1",
        peer: "127.0.0.1:9",
        principal: "a\"b\\c\u{1}",
        method: "GET",
        path: "/v1/\"x\"",
        status: 200,
        bytes: 7,
        took: Duration::from_micros(42),
    };

    #[test]
    fn a_line_is_a_line_whatever_is_in_it() {
        let mut text = String::new();
        plain(&mut text, "2026-01-01T00:00:00", 5, &LINE);
        plain(
            &mut text,
            "2026-01-01T00:00:00",
            123,
            &Line { bytes: 0, took: Duration::from_secs(2), ..LINE },
        );
        assert_eq!(
            text,
            "2026-01-01T00:00:00.005Z 127.0.0.1:9 a\"b\\c? GET /v1/\"x\" 200 7 42us req_1\n\
             2026-01-01T00:00:00.123Z 127.0.0.1:9 a\"b\\c? GET /v1/\"x\" 200 0 2000000us req_1\n"
        );
    }

    #[test]
    fn a_line_is_json_whatever_is_in_it() {
        let mut text = String::new();
        json(&mut text, "2026-01-01T00:00:00", 5, &LINE).unwrap();
        let read: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(read["principal"], "a\"b\\c\u{1}");
        assert_eq!((&read["status"], &read["micros"]), (&200.into(), &42.into()));
        assert_eq!(read["timestamp"], "2026-01-01T00:00:00.005Z");
    }
}
