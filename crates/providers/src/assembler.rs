//! Assembles calls from the events of a stream.

use serde_json::Value;

use crate::Call;

/// The most bytes of arguments in one call: a model that repeats itself endlessly must not fill the memory.
const MAX_ARGUMENT_BYTES: usize = 16 << 20;

/// Reads one event into the calls of its stream.
pub(crate) type ReadEvent = fn(&mut StreamedCalls, &Value);

/// Takes the events of one stream and returns calls as they become complete.
#[derive(Debug)]
pub struct Assembler {
    read_event: ReadEvent,
    calls: StreamedCalls,
}

impl Assembler {
    pub(crate) fn new(read_event: ReadEvent) -> Self {
        Self { read_event, calls: StreamedCalls::default() }
    }

    /// The calls that this event completes, in the model's order.
    pub fn push(&mut self, event: &Value) -> Vec<Call> {
        (self.read_event)(&mut self.calls, event);
        std::mem::take(&mut self.calls.complete)
    }

    /// The calls that are incomplete at the end of the stream. Their arguments are invalid even if they parse: more
    /// could have followed.
    pub fn finish(self) -> Vec<Call> {
        self.calls.open.into_iter().map(|open| Call::truncated(open.id, open.name, open.text)).collect()
    }
}

/// The calls of a stream so far. A provider identifies a call by a key of its own.
#[derive(Debug, Default)]
pub(crate) struct StreamedCalls {
    open: Vec<OpenCall>,
    pub complete: Vec<Call>,
    /// Keys of completed calls, for providers that repeat them in a closing event.
    completed_keys: Vec<String>,
}

/// A call whose arguments are incomplete.
#[derive(Debug)]
struct OpenCall {
    key: String,
    id: Option<String>,
    name: String,
    text: String,
}

impl StreamedCalls {
    /// Begins a call, or completes the id and name of the open call with this key.
    pub(crate) fn begin(&mut self, key: &str, id: Option<String>, name: Option<String>) {
        match self.open.iter_mut().find(|open| open.key == key) {
            Some(open) => {
                open.id = open.id.take().or(id);
                if open.name.is_empty() {
                    open.name = name.unwrap_or_default();
                }
            }
            None => {
                let name = name.unwrap_or_default();
                self.open.push(OpenCall { key: key.to_owned(), id, name, text: String::new() });
            }
        }
    }

    /// Appends to the arguments of an open call.
    pub(crate) fn append(&mut self, key: &str, text: &str) {
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key)
            && open.text.len() + text.len() <= MAX_ARGUMENT_BYTES
        {
            open.text.push_str(text);
        }
    }

    /// Completes the call with this key.
    pub(crate) fn end(&mut self, key: &str) {
        if let Some(at) = self.open.iter().position(|open| open.key == key) {
            let OpenCall { id, name, text, .. } = self.open.remove(at);
            self.complete.push(Call::parsed(id, name, text));
        }
    }

    /// Completes all calls. If the response was truncated, empty arguments of the last call are incomplete ones.
    pub(crate) fn end_all(&mut self, is_truncated: bool) {
        let mut open = std::mem::take(&mut self.open).into_iter().peekable();
        while let Some(OpenCall { id, name, text, .. }) = open.next() {
            let is_incomplete = is_truncated && open.peek().is_none() && text.trim().is_empty();
            let call = if is_incomplete { Call::truncated } else { Call::parsed };
            self.complete.push(call(id, name, text));
        }
    }

    /// Adds a call that arrived in one event, unless it was added before. It replaces the open call with this key.
    pub(crate) fn add_complete_once(&mut self, key: &str, call: Call) {
        self.open.retain(|open| open.key != key);
        let completed = call.id.clone().unwrap_or_else(|| key.to_owned());
        if !self.completed_keys.contains(&completed) {
            self.completed_keys.push(completed);
            self.complete.push(call);
        }
    }

    /// Discards the open calls at the end of a response: they must not run.
    pub(crate) fn discard_open(&mut self) {
        self.open.clear();
        self.completed_keys.clear();
    }

    /// The key and id of the call that began last.
    pub(crate) fn last_open(&self) -> Option<(&str, Option<&str>)> {
        self.open.last().map(|open| (open.key.as_str(), open.id.as_deref()))
    }

    /// The id of the open call with this key.
    pub(crate) fn open_id(&self, key: &str) -> Option<&str> {
        self.open.iter().find(|open| open.key == key).and_then(|open| open.id.as_deref())
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }
}
