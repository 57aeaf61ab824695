//! Calls put together from the pieces in which they are streamed.

use serde_json::Value;

use crate::Call;

/// No tool takes more; a model that repeats itself for ever must not fill the memory.
const MOST_TEXT: usize = 16 << 20;

/// Takes the events of one stream and gives calls as they become complete.
#[derive(Debug)]
pub struct Assembler {
    take: fn(&mut Pieces, &Value),
    pieces: Pieces,
}

impl Assembler {
    pub(crate) fn new(take: fn(&mut Pieces, &Value)) -> Self {
        Self { take, pieces: Pieces::default() }
    }

    /// The calls that this event completes, in the model's order.
    pub fn take(&mut self, event: &Value) -> Vec<Call> {
        (self.take)(&mut self.pieces, event);
        std::mem::take(&mut self.pieces.complete)
    }

    /// The calls that the end of the stream leaves incomplete. Their arguments are unreadable whatever they
    /// look like: nobody knows what was still to come.
    pub fn finish(mut self) -> Vec<Call> {
        let open = std::mem::take(&mut self.pieces.open);
        open.into_iter().map(|open| Call::truncated(open.id, open.name, open.text)).collect()
    }
}

/// What has come of calls so far. Providers say which piece belongs to which call by a key of their own.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    open: Vec<Open>,
    complete: Vec<Call>,
    /// Keys of calls that were given out, for providers that repeat them in a closing event.
    given: Vec<String>,
}

#[derive(Debug)]
struct Open {
    key: String,
    id: Option<String>,
    name: String,
    text: String,
}

impl Pieces {
    /// A call begins. A call that is open under this key is the same one.
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
                self.open.push(Open { key: key.to_owned(), id, name, text: String::new() });
            }
        }
    }

    /// More of a call's arguments. A piece of a call that never began has nothing to belong to.
    pub(crate) fn append(&mut self, key: &str, text: &str) {
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key)
            && open.text.len() + text.len() <= MOST_TEXT
        {
            open.text.push_str(text);
        }
    }

    /// The call under this key has ended.
    pub(crate) fn end(&mut self, key: &str) {
        if let Some(at) = self.open.iter().position(|open| open.key == key) {
            let Open { id, name, text, .. } = self.open.remove(at);
            self.complete.push(Call::parsed(id, name, text));
        }
    }

    /// The response is at its end. When it was `cut` short, the last call may lack all of its arguments, which
    /// would look as if it had none.
    pub(crate) fn end_all(&mut self, cut: bool) {
        let mut open = std::mem::take(&mut self.open).into_iter().peekable();
        while let Some(Open { id, name, text, .. }) = open.next() {
            let is_cut = cut && open.peek().is_none() && text.trim().is_empty();
            self.complete.push(if is_cut {
                Call::truncated(id, name, text)
            } else {
                Call::parsed(id, name, text)
            });
        }
    }

    /// A call that arrived in one piece.
    pub(crate) fn whole(&mut self, call: Call) {
        self.complete.push(call);
    }

    /// The same, unless it was given already. `key` is that of its pieces, which say nothing new any more.
    pub(crate) fn whole_once(&mut self, key: &str, call: Call) {
        self.open.retain(|open| open.key != key);
        let known = call.id.clone().unwrap_or_else(|| key.to_owned());
        if !self.given.contains(&known) {
            self.given.push(known);
            self.complete.push(call);
        }
    }

    /// The response is over: what is still open is not to be run.
    pub(crate) fn forget(&mut self) {
        self.open.clear();
        self.given.clear();
    }

    /// The key of the call that began last, and its id.
    pub(crate) fn last(&self) -> Option<(&str, Option<&str>)> {
        self.open.last().map(|open| (open.key.as_str(), open.id.as_deref()))
    }

    /// The id of the call that is open under this key.
    pub(crate) fn id(&self, key: &str) -> Option<&str> {
        self.open.iter().find(|open| open.key == key).and_then(|open| open.id.as_deref())
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }
}
