//! What answers a call's capabilities, behind the guard: those that are set up, or the stubs of a test.

use std::sync::Arc;

use serde_json::Value;
use toolwright_capabilities::{Asker, Client, Fault, Scope};
use toolwright_engine::{Host, HostError, HostFuture, Level};

use crate::audit::Entry;
use crate::block;
use crate::call::{Call, Caller};
use crate::prepared::Prepared;
use crate::redact;
use crate::trip::Keeping;

/// Of one call; more would only fill the record.
const MOST_ENTRIES: usize = 100;

#[derive(Clone)]
pub(crate) enum Backing {
    /// The capabilities that are set up, for one tool of one session.
    Served(Scope),
    /// Answers everything, `callTool` included.
    Stub(Arc<dyn Host>),
}

impl Backing {
    /// What the tool may use in the session of this client.
    pub fn served(prepared: &Prepared, client: Arc<dyn Client>) -> Self {
        Self::Served(Scope { client, allow: prepared.allow.clone() })
    }

    pub fn call(&self, call: &Arc<Call>, path: &str, args: Vec<Value>) -> HostFuture {
        match self {
            Self::Stub(host) => host.call(path, args),
            Self::Served(scope) if path == "messaging.send" => {
                let (scope, call) = (scope.clone(), Arc::clone(call));
                Box::pin(async move { send(&scope, &call, args).await })
            }
            Self::Served(scope) => {
                let answer = call.runtime.capabilities().call(scope, &asker(call), path, args);
                let call = Arc::clone(call);
                Box::pin(async move {
                    let answered = answer.await.map_err(told)?;
                    call.asked().notes.extend(answered.note);
                    Ok(answered.value)
                })
            }
        }
    }

    /// `audit.log` and `progress`.
    pub fn call_sync(&self, call: &Call, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        match self {
            Self::Stub(host) => return host.call_sync(path, args),
            Self::Served(_) if path == "audit.log" && matches!(call.caller, Caller::Of { .. }) => {
                let mut args = args.into_iter();
                let event =
                    args.next().and_then(|event| event.as_str().map(str::to_owned)).unwrap_or_default();
                let mut asked = call.asked();
                if asked.entries.len() < MOST_ENTRIES {
                    asked.entries.push((event, args.next().unwrap_or(Value::Null)));
                }
            }
            Self::Served(_) if path == "audit.log" => {
                let spec = call.spec();
                call.runtime.audit().log(&Entry {
                    client_id: call.caller.client_id(),
                    tool: &spec.tool_id,
                    tool_version: &spec.version,
                    execution_id: &call.execution_id,
                    event: args.first().and_then(Value::as_str).unwrap_or_default(),
                    data: args.get(1).unwrap_or(&Value::Null),
                });
            }
            Self::Served(scope) => call.runtime.capabilities().progress(scope, &args),
        }
        Ok(Value::Null)
    }

    pub fn console(&self, call: &Call, level: Level, mut text: String) {
        redact::scrub(&mut text, &call.secrets);
        let tool = &call.spec().tool_id;
        match (self, level) {
            (Self::Stub(host), _) => host.console(level, text),
            (_, Level::Error) => tracing::error!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Warn) => tracing::warn!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Info) => tracing::info!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Debug) => tracing::debug!(target: "toolwright::console", tool, "{text}"),
        }
    }
}

/// Hands a message over. One that shuts the client out is kept to first: whoever has gone away is shut out all the same, and
/// finds out when it comes back.
async fn send(scope: &Scope, call: &Arc<Call>, args: Vec<Value>) -> Result<Value, HostError> {
    let until = block::asked_for(args.first()).map_err(told)?;
    let mut is_kept = false;
    if let (Some(until), Caller::Of { orchestrator, session, .. }) = (until, &call.caller) {
        orchestrator.block(session, until).await.map_err(|error| {
            tracing::error!("a block could not be kept: {error}");
            HostError::new("UNREACHABLE", "the block could not be recorded")
        })?;
        is_kept = true;
    }
    match call.runtime.capabilities().call(scope, &asker(call), "messaging.send", args).await {
        Err(fault) if is_kept && fault.code == "CLOSED" => Ok(Value::Null),
        sent => sent.map(|answered| answered.value).map_err(told),
    }
}

fn asker(call: &Call) -> Asker<'_> {
    let client_id = call.caller.client_id();
    let (session, user, org, roles) = match &call.caller {
        Caller::Given(_) => (None, client_id, None, &[][..]),
        Caller::Of { session, keeping, .. } => {
            let who = &session.principal;
            let lasts = *keeping == Keeping::Stored;
            (lasts.then_some(session.id.as_str()), who.id.as_str(), who.org.as_deref(), &who.roles[..])
        }
    };
    let (tool, execution_id) = (call.spec().tool_id.as_str(), &*call.execution_id);
    Asker { tool, execution_id, client_id, session, user, org, roles, deadline: call.deadline, now: call.now }
}

fn told(fault: Fault) -> HostError {
    HostError::new(fault.code, fault.message)
}
