//! Collects the parts of one response while its events are read.

use std::collections::VecDeque;

use serde_json::Value;

use crate::event::{FinishReason, Usage};
use crate::model::{ModelErrorKind, ModelEvent};

/// Maximum number of bytes of text and reasoning in one response: a model that repeats itself must not fill the
/// memory.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The events that were read so far.
#[derive(Debug, Default)]
pub(crate) struct StepReader {
    events: VecDeque<ModelEvent>,
    open: Option<PartKind>,
    /// The provider data of the calls in the current event, in their order.
    call_data: VecDeque<Option<Value>>,
    text_bytes: usize,
    pub usage: Option<Usage>,
    pub finish: Option<FinishReason>,
    /// The provider has marked the end of the response.
    pub is_complete: bool,
    /// The provider reports an error inside the stream.
    pub error: Option<ModelErrorKind>,
    /// Data of the open part, collected by transports whose signature arrives in pieces.
    pub signature: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Text,
    Reasoning,
}

impl StepReader {
    /// A piece of text.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.open(PartKind::Text);
            if self.count(text) {
                self.events.push_back(ModelEvent::Text(text.to_owned()));
            }
        }
    }

    /// A piece of reasoning. An empty one begins a part too: it may carry data for the provider only.
    pub fn reasoning(&mut self, text: &str) {
        let is_new = self.open(PartKind::Reasoning);
        if (is_new || !text.is_empty()) && self.count(text) {
            self.events.push_back(ModelEvent::Reasoning(text.to_owned()));
        }
    }

    /// Ends the open part, if there is one.
    pub fn end_part(&mut self, provider_data: Option<Value>) {
        if self.open.take().is_some() {
            self.events.push_back(ModelEvent::PartEnded(provider_data));
        }
        self.signature.clear();
    }

    /// Adds the provider data of the next call in this event.
    pub fn call_data(&mut self, provider_data: Option<Value>) {
        self.call_data.push_back(provider_data);
    }

    /// Adds a complete call.
    pub fn call(&mut self, call: toolwright_providers::Call) {
        self.end_part(None);
        let provider_data = self.call_data.pop_front().flatten();
        self.events.push_back(ModelEvent::Call { call, provider_data });
    }

    /// Adds the end of the response.
    pub fn finished(&mut self, finish: FinishReason) {
        self.events.push_back(ModelEvent::Finished { finish, usage: self.usage });
    }

    pub fn pop(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    pub const fn is_too_large(&self) -> bool {
        self.text_bytes > MAX_TEXT_BYTES
    }

    /// Returns true when it begins a part.
    fn open(&mut self, kind: PartKind) -> bool {
        if self.open == Some(kind) {
            return false;
        }
        self.end_part(None);
        self.open = Some(kind);
        true
    }

    fn count(&mut self, text: &str) -> bool {
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        !self.is_too_large()
    }
}
