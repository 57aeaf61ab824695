//! The conversation log itself, as lines of JSON: what `toolwright chat` reads from the server.

use serde_json::{Value, json};
use toolwright_agent::{Event, EventBody};

use super::encode::Encoder;

pub(super) const CONTENT_TYPE: &str = "application/x-ndjson";

/// Writes each event of a turn as a line. After a failure, a last line says why.
#[derive(Debug)]
pub(super) struct LogEncoder {
    pub turn: String,
}

impl Encoder for LogEncoder {
    const CONTENT_TYPE: &'static str = CONTENT_TYPE;
    const HEARTBEAT: &'static str = "\n";

    fn is_beyond(&self, event: &Event) -> bool {
        *event.turn != *self.turn
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        let body = for_clients(event.body.clone());
        write_line(out, &json!({ "turn": &*event.turn, "at": event.at, "event": body }));
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        if let Some(failure) = failure {
            write_line(out, &json!({ "failure": failure }));
        }
    }
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
