//! One call on its way through the corridor, and the envelope at its end. Opens and closes nothing: the orchestrator does.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use toolwright_capabilities::Client;
use toolwright_contract::{Envelope, Failure, IntentKind, Meta, Success};
use toolwright_registry::hex;

use crate::call::{Asked, LateCancel};
use crate::gate::Tokens;
use crate::ids;
use crate::observe::Span;
use crate::prepared::Prepared;
use crate::redact;
use crate::runtime::Runtime;
use crate::store::{AuditEntry, Confirmation, SessionRecord};

pub(crate) struct Trip {
    pub started: Instant,
    pub now: i64,
    pub session: Arc<SessionRecord>,
    /// The toolset that the session began with; a replay needs none.
    pub runtime: Option<Runtime>,
    pub tool: String,
    pub execution: Arc<str>,
    pub digest: [u8; 32],
    /// The digest for the audit, and the texts of the arguments that must not appear anywhere.
    pub hidden: Hidden,
    pub prepared: Option<Arc<Prepared>>,
    /// What will run.
    pub args: Value,
    /// The approval that this call uses up.
    pub approval: Option<Arc<Confirmation>>,
    /// The call whose handler made this one.
    pub parent: Option<Arc<crate::call::Call>>,
    pub cancel: LateCancel,
    /// Who hears of it while it runs, instead of the session's client.
    pub client: Option<Arc<dyn Client>>,
    /// Its place in a trace, if somebody watches.
    pub span: Option<Span>,
    /// More members of `meta`.
    pub more: Map<String, Value>,
    pub retries: u32,
    /// What the handler added to the audit.
    pub entries: Vec<(String, Value)>,
    /// It was claimed before, by an owner who gave it up: the budget has been spent.
    pub is_paid: bool,
    /// What it has taken of the rate limits; given back unless it is claimed, or a person is asked.
    pub tokens: Tokens,
    pub keeping: Keeping,
}

/// Whether the store knows the call's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    Stored,
    /// It is this one call's, and over with it.
    Unstored,
}

/// What is kept of arguments that must not be kept.
#[derive(Default)]
pub(crate) struct Hidden {
    digest: Option<[u8; 32]>,
    pub secrets: Arc<[String]>,
}

impl Trip {
    /// Takes over what an attempt leaves for the audit and for `meta`.
    pub fn heard(&mut self, asked: &mut Asked) {
        self.entries.append(&mut asked.entries);
        self.more.extend(asked.notes.drain(..).map(|(name, value)| (name.to_owned(), value)));
    }

    pub fn envelope(&self, outcome: Result<Success, Failure>) -> Envelope {
        let took = self.started.elapsed().as_millis();
        let meta = Meta {
            tool: self.tool.clone(),
            tool_version: self.prepared.as_ref().map(|prepared| prepared.tool.spec.version.clone()),
            registry_version: self.session.registry_version().to_owned(),
            duration: u64::try_from(took).unwrap_or(u64::MAX),
            execution_id: self.execution.as_ref().to_owned(),
            more: self.more.clone(),
        };
        Envelope { outcome, meta }
    }

    /// Takes note of the `writeOnly` arguments, before the handler takes them.
    pub fn hide(&mut self) {
        if let Some(prepared) = self.prepared.as_ref().filter(|prepared| prepared.has_secrets) {
            let schema = &prepared.tool.spec.json_schema;
            let shown = redact::redacted(schema, &self.args);
            let digest = Some(ids::digest(&self.tool, &shown));
            self.hidden = Hidden { digest, secrets: redact::secrets(schema, &self.args).into() };
        } else if self.approval.as_ref().is_some_and(|approval| approval.is_edited) {
            // The id stands for the call as it was made; what runs is something else.
            self.hidden.digest = Some(ids::digest(&self.tool, &self.args));
        }
    }

    /// The digest of the arguments without those that must not be kept.
    fn shown_digest(&self) -> [u8; 32] {
        let own = self.hidden.digest.or_else(|| self.prepared.as_ref().map(|_| self.digest));
        own.unwrap_or_else(|| {
            let spec = self.runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&self.tool));
            match spec.filter(|spec| redact::marks_anything(&spec.json_schema)) {
                Some(spec) => ids::digest(&self.tool, &redact::redacted(&spec.json_schema, &self.args)),
                None => self.digest,
            }
        })
    }

    pub fn audit(&self, event: &str, envelope: &Envelope) -> AuditEntry {
        let (outcome, intents) = match &envelope.outcome {
            Ok(success) => ("ok", success.intents.iter().map(kind).collect()),
            Err(failure) => (failure.kind.as_str(), Vec::new()),
        };
        AuditEntry {
            at: self.now,
            event: event.to_owned(),
            session: self.session.id.clone(),
            client_id: self.session.client_id.clone(),
            tool: self.tool.clone(),
            tool_version: envelope.meta.tool_version.clone().unwrap_or_default(),
            registry_version: envelope.meta.registry_version.clone(),
            execution_id: self.execution.as_ref().to_owned(),
            args_digest: hex(&self.shown_digest()),
            outcome: outcome.to_owned(),
            duration_ms: envelope.meta.duration,
            intents,
            data: self
                .more
                .get("clamped")
                .map_or(Value::Null, |clamped| serde_json::json!({ "clamped": clamped })),
        }
    }
}

fn kind(intent: &Value) -> String {
    let word = intent.get("type").and_then(Value::as_str).unwrap_or_default();
    IntentKind::from_word(word).map_or("unknown", IntentKind::as_str).to_owned()
}
