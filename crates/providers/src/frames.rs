//! Decodes the bytes of a stream into JSON events: server-sent events, lines, or whole messages.

use serde_json::Value;

/// How events are separated in a provider's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value a line.
    Lines,
    /// Messages of a WebSocket: one event each.
    Messages,
}

/// The largest event. Without a limit a broken stream could fill the memory.
const MAX_EVENT_BYTES: usize = 64 << 20;
/// How much of a malformed event the error quotes.
const MAX_EXCERPT_BYTES: usize = 200;

/// An event that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is not JSON: {reason}: {text}")]
pub struct MalformedEvent {
    /// Its first bytes.
    pub text: String,
    pub reason: String,
}

/// Decodes events from chunks of a stream.
#[derive(Debug)]
pub struct FrameDecoder {
    framing: Framing,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The data lines of the event that has not ended yet.
    data: Option<Vec<u8>>,
    /// The last byte was CR: an LF after it ends the same line.
    after_cr: bool,
    is_first_line: bool,
    is_too_long: bool,
}

impl FrameDecoder {
    /// A decoder at the begin of a stream.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: None,
            after_cr: false,
            is_first_line: true,
            is_too_long: false,
        }
    }

    /// The events that this chunk completes. The end marker `[DONE]` is returned as that string.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Result<Value, MalformedEvent>> {
        let mut events = Vec::new();
        if self.framing == Framing::Messages {
            events.extend(event(chunk));
            return events;
        }
        let mut rest = chunk;
        while let Some((&first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = after;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.extend(rest);
                break;
            };
            self.extend(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line());
        }
        events
    }

    /// The last event, if the stream ended without its last line ending.
    pub fn finish(mut self) -> Option<Result<Value, MalformedEvent>> {
        let mut last = if self.line.is_empty() { None } else { self.end_line() };
        if last.is_none() && self.framing == Framing::Sse {
            last = self.end_event();
        }
        last
    }

    fn extend(&mut self, bytes: &[u8]) {
        let length = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if length + bytes.len() > MAX_EVENT_BYTES {
            self.is_too_long = true;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) -> Option<Result<Value, MalformedEvent>> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if self.framing == Framing::Lines {
            return if self.is_too_long { Some(Err(self.too_long())) } else { event(line) };
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        // The data repeats the type of the event, so `event:` is not needed; nor are `id:` and `retry:`.
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => data.extend(b"\n".iter().chain(value)),
                None => self.data = Some(value.to_vec()),
            }
        }
        None
    }

    fn end_event(&mut self) -> Option<Result<Value, MalformedEvent>> {
        let data = self.data.take();
        if self.is_too_long { Some(Err(self.too_long())) } else { event(&data?) }
    }

    fn too_long(&mut self) -> MalformedEvent {
        self.is_too_long = false;
        MalformedEvent { text: String::new(), reason: format!("longer than {MAX_EVENT_BYTES} bytes") }
    }
}

fn event(bytes: &[u8]) -> Option<Result<Value, MalformedEvent>> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    if bytes == b"[DONE]" {
        return Some(Ok(Value::String("[DONE]".to_owned())));
    }
    let malformed = |error: serde_json::Error| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_EXCERPT_BYTES)]).into_owned();
        MalformedEvent { text, reason: error.to_string() }
    };
    Some(serde_json::from_slice(bytes).map_err(malformed))
}
