//! The access log: a line a request, to stderr. Lines are gathered and written a few times a second, so that a request
//! does not pay for a system call of its own.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
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
    pub peer: SocketAddr,
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
        // Writing to a text does not fail.
        let _ = match self.form {
            AccessLog::Json => json(text, stamp, now.subsec_millis(), line),
            _ => plain(text, stamp, now.subsec_millis(), line),
        };
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

fn plain(text: &mut String, stamp: &str, millis: u32, line: &Line<'_>) -> std::fmt::Result {
    let Line { request_id, peer, principal, method, path, status, bytes, took } = line;
    let took = took.as_micros();
    // A name of a token must not look like a line of the log.
    let principal: String = principal.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    writeln!(
        text,
        "{stamp}.{millis:03}Z {peer} {principal} {method} {path} {status} {bytes} {took}us {request_id}"
    )
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

    #[test]
    fn a_line_is_json_whatever_is_in_it() {
        let line = Line {
            request_id: "req_1",
            peer: "127.0.0.1:9".parse().unwrap(),
            principal: "a\"b\\c\u{1}",
            method: "GET",
            path: "/v1/\"x\"",
            status: 200,
            bytes: 7,
            took: Duration::from_micros(42),
        };
        let mut text = String::new();
        json(&mut text, "2026-01-01T00:00:00", 5, &line).unwrap();
        let read: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(read["principal"], "a\"b\\c\u{1}");
        assert_eq!((&read["status"], &read["micros"]), (&200.into(), &42.into()));
        assert_eq!(read["timestamp"], "2026-01-01T00:00:00.005Z");
    }
}
