//! The conversation log itself, as lines of JSON: what `toolwright chat` reads from the server.

use serde_json::{Value, json};
use toolwright_agent::{Event, EventBody};

use super::encode::Encoder;

pub(super) const CONTENT_TYPE: &str = "application/x-ndjson";

/// Writes each event of a turn as a line. After a failure, a last line says why.
#[derive(Debug)]
pub(super) struct LogEncoder {
    pub turn: String,
    /// The client has the events up to this position.
    pub seen: u64,
}

impl Encoder for LogEncoder {
    const CONTENT_TYPE: &'static str = CONTENT_TYPE;
    const HEARTBEAT: &'static str = "\n";

    fn is_beyond(&self, event: &Event) -> bool {
        *event.turn != *self.turn && matches!(event.body, EventBody::TurnStarted { .. })
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        // The results of earlier turns' tasks are followed on their own.
        if *event.turn == *self.turn
            && let Some(event) = event.suffix_after(self.seen)
        {
            write_event(out, event);
        }
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        if let Some(failure) = failure {
            write_line(out, &json!({ "failure": failure }));
        }
    }
}

/// Writes an event as a line.
pub(super) fn write_event(out: &mut String, event: Event) {
    let Event { position, turn, at, body } = event;
    write_line(out, &json!({ "position": position, "turn": &*turn, "at": at, "event": for_clients(body) }));
}

fn write_line(out: &mut String, value: &Value) {
    out.push_str(&value.to_string());
    out.push('\n');
}

/// Without the data of the model's provider, and without the additions of the request.
fn for_clients(mut body: EventBody) -> EventBody {
    match &mut body {
        EventBody::PartEnded { provider_data, .. } | EventBody::ToolCalled { provider_data, .. } => {
            *provider_data = None;
        }
        EventBody::TurnStarted { note, context, .. } => {
            *note = None;
            *context = Default::default();
        }
        _ => {}
    }
    body
}
