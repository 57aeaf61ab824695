//! The state of one call in the orchestrator, and the envelope and audit entry of its end. Writes nothing.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use toolwright_capabilities::Client;
use toolwright_contract::{Envelope, ErrorKind, Failure, IntentKind, Meta, Success};
use toolwright_engine::Host;
use toolwright_registry::toolset::Toolset;
use toolwright_registry::{DESCRIBE, hex};

use crate::admission::ClaimKind;
use crate::capacity::{Permit, SeatRequest};
use crate::gate::CallRates;
use crate::ids;
use crate::invocation::{HandlerEffects, Invocation, LazyCancel};
use crate::prepared_tool::PreparedTool;
use crate::redaction;
use crate::runtime::Runtime;
use crate::spans::Span;
use crate::steps::StepTimer;
use crate::store::{AuditEntry, ConfirmationRecord, SessionRecord, TaskRecord};

pub(crate) struct Execution {
    pub started: Instant,
    /// When the call came, in milliseconds since 1970.
    pub now: i64,
    pub session: Arc<SessionRecord>,
    pub claim: ClaimKind,
    /// The session's toolset, if it can be loaded; a replay needs none.
    pub runtime: Option<Runtime>,
    pub tool: String,
    pub id: Arc<str>,
    /// SHA-256 of the tool and its arguments as the caller sent them.
    pub digest: [u8; 32],
    /// The arguments that will run.
    pub args: Value,
    pub prepared: Option<Arc<PreparedTool>>,
    /// The digest for the audit entry, if it differs from `digest`.
    pub redacted_digest: Option<[u8; 32]>,
    /// Texts of `writeOnly` arguments, which must not appear in any output.
    pub secrets: Arc<[String]>,
    /// The approval that this call uses up.
    pub approval: Option<Arc<ConfirmationRecord>>,
    /// The task that it runs, and the task that it has stored for later.
    pub task: Option<Arc<TaskRecord>>,
    pub begun_task: Option<Arc<TaskRecord>>,
    /// The invocation whose handler made this call.
    pub parent: Option<Arc<Invocation>>,
    pub cancel: LazyCancel,
    /// Receives progress and messages instead of the session's client.
    pub client: Option<Arc<dyn Client>>,
    /// Stubbed capabilities; see [`CallRequest::host`](crate::CallRequest::host).
    pub host: Option<Arc<dyn Host>>,
    /// A fixed time for the handler's clock.
    pub handler_now: Option<i64>,
    /// Why it may not run, if that is known before its gates.
    pub refusal: Option<Failure>,
    /// Its span, if an observer is set.
    pub span: Option<Span>,
    /// Further members of `meta`.
    pub more_meta: Map<String, Value>,
    /// The seat of its handler, if that needs one.
    pub permit: Option<Permit>,
    pub retries: u32,
    /// Audit entries of the handler: event and data.
    pub handler_entries: Vec<(String, Value)>,
    /// An earlier claim, since released, has charged the meters for this call.
    pub is_charged: bool,
    /// It counts for them when it is claimed or a person is asked.
    pub rates: CallRates,
    /// The [`lease`](crate::store::Store::lease) that its claim belongs to.
    pub lease: u64,
    pub steps: StepTimer,
    /// The arguments for the record, once they were noted: see [`Self::note_args`].
    pub recorded_args: Option<Arc<str>>,
}

/// Longer arguments are not recorded.
const MAX_RECORDED_ARGS: usize = 64 << 10;

impl Execution {
    /// Whether it tests a handler; see [`CallRequest::host`](crate::CallRequest::host).
    pub fn is_test(&self) -> bool {
        self.host.is_some()
    }

    /// When its handler is stopped if it starts now: never later than that of the calling tool.
    pub fn deadline(&self, prepared: &PreparedTool) -> Instant {
        let own = Instant::now() + prepared.timeout;
        self.parent.as_ref().map_or(own, |parent| own.min(parent.deadline))
    }

    /// The request for its seat: a nested call counts for its root call.
    pub fn seat_request(&self) -> SeatRequest<'_> {
        let chain = || std::iter::successors(self.parent.as_deref(), |call| call.parent.as_deref());
        let root = chain().last();
        SeatRequest {
            tool: root.map_or(&self.tool, |root| &root.spec().tool_id),
            principal: &self.session.principal,
            // The address is unique while the root call runs, which outlives its nested calls.
            root: root.map(|root| std::ptr::from_ref(root).addr()),
            depth: chain().count(),
        }
    }

    /// Whether it failed because its toolset or its tool could not be loaded.
    pub fn could_not_load(&self, failure: &Failure) -> bool {
        self.prepared.is_none() && matches!(failure.kind, ErrorKind::Unavailable | ErrorKind::Internal)
    }

    /// Collects what an attempt leaves for the audit log and for `meta`.
    pub fn collect_effects(&mut self, effects: &mut HandlerEffects) {
        self.handler_entries.append(&mut effects.audit_entries);
        self.more_meta.extend(effects.meta.drain(..).map(|(name, value)| (name.to_owned(), value)));
    }

    /// The version of its tool, also if the call is refused before the tool is prepared. `None` if the toolset, or the
    /// tool in it, is unknown.
    fn tool_version(&self) -> Option<String> {
        let toolset = self.runtime.as_ref()?.toolset();
        version_in(toolset, &self.tool).map(str::to_owned)
    }

    pub fn envelope(&self, outcome: Result<Success, Failure>) -> Envelope {
        let elapsed = self.started.elapsed().as_millis();
        let meta = Meta {
            tool: self.tool.clone(),
            tool_version: self.tool_version(),
            registry_version: self.session.registry_version().to_owned(),
            duration: u64::try_from(elapsed).unwrap_or(u64::MAX),
            execution_id: self.id.as_ref().to_owned(),
            more: self.more_meta.clone(),
        };
        Envelope { outcome, meta }
    }

    /// Remembers what must be redacted, before the handler takes the arguments.
    pub fn note_secrets(&mut self) {
        if let Some(prepared) = self.prepared.as_ref().filter(|prepared| prepared.has_secrets) {
            let schema = &prepared.tool.spec.json_schema;
            let redacted = redaction::redacted(schema, &self.args);
            self.redacted_digest = Some(ids::digest(&self.tool, &redacted));
            self.secrets = redaction::secrets(schema, &self.args).into();
        } else if self.approval.as_ref().is_some_and(|approval| approval.is_edited) {
            // `digest` covers the call as it was made; the approver has changed what runs.
            self.redacted_digest = Some(ids::digest(&self.tool, &self.args));
        }
    }

    /// Notes the arguments for the record, without `writeOnly` ones, before the handler takes them.
    pub fn note_args(&mut self) {
        self.recorded_args = self.redacted_args_text();
    }

    /// The arguments without `writeOnly` ones, as JSON text. `None` if they are too long, if the handler has taken
    /// them, or if the tool is unknown: without a schema, secrets cannot be recognised.
    pub fn redacted_args_text(&self) -> Option<Arc<str>> {
        let spec = self.runtime.as_ref()?.toolset().metadata(&self.tool)?;
        let has_secrets = match &self.prepared {
            Some(prepared) => prepared.has_secrets,
            None => redaction::has_write_only(&spec.json_schema),
        };
        let text = match has_secrets {
            _ if self.args.is_null() => return None,
            true => redaction::redacted(&spec.json_schema, &self.args).to_string(),
            false => self.args.to_string(),
        };
        (text.len() <= MAX_RECORDED_ARGS).then(|| text.into())
    }

    /// The digest of the arguments without `writeOnly` ones.
    fn audit_digest(&self) -> [u8; 32] {
        let known = self.redacted_digest.or_else(|| self.prepared.as_ref().map(|_| self.digest));
        known.unwrap_or_else(|| {
            let spec = self.runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&self.tool));
            match spec.filter(|spec| redaction::has_write_only(&spec.json_schema)) {
                Some(spec) => ids::digest(&self.tool, &redaction::redacted(&spec.json_schema, &self.args)),
                None => self.digest,
            }
        })
    }

    /// The execution whose handler made this call, or that has begun the task.
    fn parent_id(&self) -> Option<&str> {
        let parent = self.parent.as_ref().map(|parent| &*parent.execution_id);
        parent.or(self.task.as_ref().map(|task| task.call.as_str()))
    }

    pub fn audit_entry(&self, event: &str, envelope: &Envelope) -> AuditEntry {
        let (outcome, intents) = match &envelope.outcome {
            Ok(success) => ("ok", success.intents.iter().map(intent_type).collect()),
            Err(failure) => (failure.kind.as_str(), Vec::new()),
        };
        let clamped = self.more_meta.get("clamped");
        AuditEntry {
            at: self.now,
            event: event.to_owned(),
            session: self.session.id.clone(),
            client_id: self.session.client_id.clone(),
            tool: self.tool.clone(),
            tool_version: envelope.meta.tool_version.clone().unwrap_or_default(),
            registry_version: envelope.meta.registry_version.clone(),
            execution_id: self.id.as_ref().to_owned(),
            args_digest: hex(&self.audit_digest()),
            outcome: outcome.to_owned(),
            duration_ms: envelope.meta.duration,
            intents,
            data: clamped.map_or(Value::Null, |clamped| json!({ "clamped": clamped })),
            principal: self.session.principal.id.clone(),
            org: self.session.principal.org.clone(),
            parent: self.parent_id().map(str::to_owned),
            steps: self.steps.steps(),
            approver: self.approval.as_ref().and_then(|approval| approval.approver.clone()),
            edits: self.approval.as_ref().map(|approval| approval.edits.clone()).unwrap_or_default(),
        }
    }
}

/// The version of a tool in a toolset. Toolwright's own tools have the version of the program.
fn version_in<'a>(toolset: &'a Toolset, tool: &str) -> Option<&'a str> {
    let is_own = tool == DESCRIBE;
    toolset.metadata(tool).map(|spec| spec.version.as_str()).or(is_own.then_some(env!("CARGO_PKG_VERSION")))
}

/// A recorded envelope, marked as replayed.
pub(crate) fn replayed(envelope: &Envelope) -> Envelope {
    let mut replayed = envelope.clone();
    replayed.meta.more.insert("replayed".to_owned(), true.into());
    replayed
}

fn intent_type(intent: &Value) -> String {
    let word = intent.get("type").and_then(Value::as_str).unwrap_or_default();
    IntentKind::from_word(word).map_or("unknown", IntentKind::as_str).to_owned()
}
