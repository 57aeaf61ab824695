//! The host of one invocation: allows only what the tool's declared side effects permit, collects intents and audit
//! entries, runs the tools that a handler calls, and passes everything else to the capabilities or to a test's stubs.

use std::future::ready;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_capabilities::{CallIdentity, CapabilityError};
use toolwright_contract::{Envelope, Mode, SideEffects};
use toolwright_engine::{Host, HostError, HostFuture, Level};

use crate::admission::ClaimKind;
use crate::block;
use crate::capability_calls::may_write;
use crate::capacity::MAX_CALL_DEPTH;
use crate::engine_functions;
use crate::invocation::Invocation;
use crate::kb_in_voice;
use crate::redaction;
use crate::request::{CallRequest, SessionRef, ToolCall};
use crate::store::{self, Backend, Durability};

/// The most audit entries of one attempt.
const MAX_AUDIT_ENTRIES: usize = 100;

/// The host as one invocation sees it.
pub(crate) struct CallHost(pub Arc<Invocation>);

impl CallHost {
    /// Why the tool may not call this function.
    fn refusal(&self, path: &str, args: &[Value]) -> Option<HostError> {
        let declared = self.0.spec().side_effects;
        let Some(function) = engine_functions::find(path) else {
            return Some(HostError::new("NOT_CONFIGURED", format!("there is no capability `{path}`")));
        };
        if declared < function.needs {
            let needed = function.needs;
            let message = format!("`{path}` needs `sideEffects: {needed}`; the tool declares `{declared}`");
            return Some(HostError::new("NOT_ALLOWED", message));
        }
        // Checked here as well as in the capability, because tests replace the capability.
        if path == "http.fetch" && declared < SideEffects::Writes && may_write(path, args, |_| None) {
            let method = args.get(1).and_then(|init| init["method"].as_str()).unwrap_or_default();
            let message = format!("a read-only tool may use GET and HEAD, not {method}");
            return Some(HostError::new("NOT_ALLOWED", message));
        }
        None
    }

    /// Adds an intent. A stub may refuse it.
    fn add_intent(&self, path: &str, args: Vec<Value>, intent: Value) -> HostFuture {
        let invocation = Arc::clone(&self.0);
        let stubbed = invocation.stub.as_ref().map(|stub| stub.call(path, args));
        Box::pin(async move {
            if let Some(answer) = stubbed {
                answer.await?;
            }
            invocation.effects().intents.push(intent);
            Ok(Value::Null)
        })
    }

    fn call_tool(&self, mut args: Vec<Value>) -> HostFuture {
        let invocation = Arc::clone(&self.0);
        let Some(name) = args.first().and_then(Value::as_str).map(str::to_owned) else {
            let error = HostError::new("INVALID_ARGUMENT", "callTool needs the tool's name");
            return Box::pin(ready(Err(error)));
        };
        let args = if args.len() > 1 { args.swap_remove(1) } else { Value::Object(Map::new()) };
        Box::pin(async move {
            let envelope = call_tool(&invocation, &name, args).await?;
            serde_json::to_value(&*envelope)
                .map_err(|error| HostError::new("INVALID_ARGUMENT", error.to_string()))
        })
    }
}

impl CallHost {
    fn dispatch(&self, path: &str, args: Vec<Value>) -> HostFuture {
        match path {
            "callTool" if self.0.stub.is_none() => self.call_tool(args),
            "voice.endSession" => {
                let after = args.first().and_then(|options| options.get("after")).cloned();
                let after = after.unwrap_or_else(|| "current_turn".into());
                self.add_intent(path, args, json!({ "type": "END_VOICE_SESSION", "after": after }))
            }
            "audio.suppress" => {
                let value = args.first().and_then(Value::as_bool).unwrap_or(true);
                self.add_intent(path, args, json!({ "type": "SUPPRESS_AUDIO", "value": value }))
            }
            _ => call_capability(&self.0, path, args),
        }
    }
}

impl Host for CallHost {
    fn call(&self, path: &str, mut args: Vec<Value>) -> HostFuture {
        if let Some(error) = self.refusal(path, &args) {
            return Box::pin(ready(Err(error)));
        }
        let is_spoken = self.0.mode() == Mode::Voice && path.starts_with("kb.");
        if is_spoken {
            kb_in_voice::request_snippets(path, &mut args);
        }
        let (invocation, name) = (Arc::clone(&self.0), path.to_owned());
        let effects_of = |tool: &str| Some(invocation.runtime.toolset().get(tool)?.spec.side_effects);
        let may_write = may_write(path, &args, effects_of);
        invocation.effects().capability_calls.begin(may_write);
        let answer = self.dispatch(path, args);
        Box::pin(async move {
            let mut result = answer.await;
            if let Ok(answer) = &mut result
                && is_spoken
            {
                kb_in_voice::remove_full_texts(answer);
            }
            invocation.effects().capability_calls.end(&name, may_write, &result);
            result
        })
    }

    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        if let Some(error) = self.refusal(path, &args) {
            return Err(error);
        }
        if path == "voice.isActive" {
            return Ok(Value::Bool(self.0.mode() == Mode::Voice));
        }
        if let Some(stub) = &self.0.stub {
            return stub.call_sync(path, args);
        }
        match path {
            "audit.log" => self.log_audit(args),
            _ => self.0.runtime.capabilities().progress(&self.0.scope, &args),
        }
        Ok(Value::Null)
    }

    fn console(&self, level: Level, mut text: String) {
        redaction::scrub(&mut text, &self.0.secrets);
        let tool = &self.0.spec().tool_id;
        match (&self.0.stub, level) {
            (Some(stub), _) => stub.console(level, text),
            (_, Level::Error) => tracing::error!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Warn) => tracing::warn!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Info) => tracing::info!(target: "toolwright::console", tool, "{text}"),
            (_, Level::Debug) => tracing::debug!(target: "toolwright::console", tool, "{text}"),
        }
    }
}

impl CallHost {
    fn log_audit(&self, args: Vec<Value>) {
        let mut args = args.into_iter();
        let event = args.next().and_then(|event| event.as_str().map(str::to_owned)).unwrap_or_default();
        let mut effects = self.0.effects();
        if effects.audit_entries.len() < MAX_AUDIT_ENTRIES {
            effects.audit_entries.push((event, args.next().unwrap_or(Value::Null)));
        }
    }
}

/// Calls a capability, or its stub, without checking the tool's side effects.
pub(crate) fn call_capability(invocation: &Arc<Invocation>, path: &str, args: Vec<Value>) -> HostFuture {
    if let Some(stub) = &invocation.stub {
        return stub.call(path, args);
    }
    let invocation = Arc::clone(invocation);
    if path == "messaging.send" {
        return Box::pin(async move { send_message(&invocation, args).await });
    }
    let answer = invocation.runtime.capabilities().call(&invocation.scope, &asker(&invocation), path, args);
    Box::pin(async move {
        let answered = answer.await.map_err(host_error)?;
        invocation.effects().meta.extend(answered.meta);
        Ok(answered.value)
    })
}

/// Sends a message to the client. A message that blocks the client is recorded first, so that the block holds even if
/// the client has disconnected.
async fn send_message(invocation: &Invocation, args: Vec<Value>) -> Result<Value, HostError> {
    let blocked_until = block::requested_block(args.first()).map_err(host_error)?;
    if let Some(until) = blocked_until {
        let blocked = invocation.orchestrator.block(&invocation.session, until).await;
        blocked.map_err(|error| {
            tracing::error!("could not record a block: {error}");
            HostError::new("UNREACHABLE", "the block could not be recorded")
        })?;
    }
    let capabilities = invocation.runtime.capabilities();
    match capabilities.call(&invocation.scope, &asker(invocation), "messaging.send", args).await {
        Err(fault) if blocked_until.is_some() && fault.code == "CLOSED" => Ok(Value::Null),
        sent => sent.map(|answered| answered.value).map_err(host_error),
    }
}

/// Runs a tool that a handler calls. Refuses cycles, deep chains, and tools with more side effects than the caller.
pub(crate) async fn call_tool(
    parent: &Arc<Invocation>,
    name: &str,
    args: Value,
) -> Result<Arc<Envelope>, HostError> {
    let forbidden = |why: String| Err(HostError::new("NOT_ALLOWED", why));
    if parent.call_chain().any(|tool| tool == name) {
        let mut chain: Vec<&str> = parent.call_chain().collect();
        chain.reverse();
        return forbidden(format!("`{name}` is being called already: {}", chain.join(" → ")));
    }
    if parent.call_chain().count() >= MAX_CALL_DEPTH {
        return forbidden(format!("tools may call tools at most {MAX_CALL_DEPTH} deep"));
    }
    let effects = parent.runtime.toolset().get(name).map(|tool| tool.spec.side_effects);
    if let Some(effects) = effects.filter(|effects| *effects > parent.spec().side_effects) {
        return forbidden(format!("`{name}` has `sideEffects: {effects}`, more than the calling tool"));
    }
    let number = {
        let mut effects = parent.effects();
        effects.nested_calls += 1;
        effects.nested_calls
    };
    // A retry must not replay the nested calls of the attempt before.
    let id = match parent.attempt {
        0 => format!("{}.{number}", parent.execution_id),
        attempt => format!("{}.r{attempt}.{number}", parent.execution_id),
    };
    if parent.claim == ClaimKind::Ephemeral {
        store_session(parent).await;
    }
    let call = ToolCall { id: Some(id), tool: name.to_owned(), args };
    let session = SessionRef::Id(parent.session.id.clone());
    let request = CallRequest { parent: Some(Arc::clone(parent)), ..CallRequest::new(session, call) };
    // Boxed: the future of a call contains that of its nested calls.
    Ok(Box::pin(parent.orchestrator.call(request)).await)
}

/// Stores the ephemeral session of a handler that calls other tools: their executions need a stored one.
async fn store_session(parent: &Invocation) {
    match parent.orchestrator.store().create_session((*parent.session).clone(), Durability::Committed).await {
        Ok(()) | Err(store::Error::Exists(_)) => {}
        // The nested call will be refused, because its session does not exist.
        Err(error) => tracing::error!("could not store the session of a nested call: {error}"),
    }
}

fn asker(invocation: &Invocation) -> CallIdentity<'_> {
    let session = &invocation.session;
    let principal = &session.principal;
    CallIdentity {
        tool: &invocation.spec().tool_id,
        execution_id: &invocation.execution_id,
        client_id: &session.client_id,
        session: (invocation.claim == ClaimKind::Stored).then_some(session.id.as_str()),
        user: &principal.id,
        org: principal.org.as_deref(),
        roles: &principal.roles,
        deadline: invocation.deadline,
        now: invocation.now,
    }
}

fn host_error(fault: CapabilityError) -> HostError {
    HostError { retry_after_ms: fault.retry_after_ms, ..HostError::new(fault.code, fault.message) }
}
