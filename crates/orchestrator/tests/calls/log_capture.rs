//! Records the log events of the current thread, as JSON.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use toolwright_orchestrator::CALL_LOG;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// The events since [`LogCapture::start`]; recording ends when it is dropped.
pub struct LogCapture {
    events: Arc<Mutex<Vec<Value>>>,
    _guard: DefaultGuard,
}

impl LogCapture {
    pub fn start() -> Self {
        let events = Arc::<Mutex<Vec<Value>>>::default();
        let guard = tracing::subscriber::set_default(Recorder(Arc::clone(&events)));
        Self { events, _guard: guard }
    }

    /// The events recorded so far; they are forgotten.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

struct Recorder(Arc<Mutex<Vec<Value>>>);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("toolwright") || metadata.target() == CALL_LOG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Map::new());
        fields.0.insert("level".to_owned(), event.metadata().level().as_str().into());
        event.record(&mut fields);
        self.0.lock().unwrap().push(Value::Object(fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
