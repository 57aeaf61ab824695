//! Between a handler and the host: lets through only what the tool's declared side effects allow, collects the
//! intents that are asked for by function, and runs the tools that a handler calls.

use std::future::ready;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, Mode};
use toolwright_engine::{Host, HostError, HostFuture, Level};

use crate::backing::Backing;
use crate::call::{Call, Caller};
use crate::functions;
use crate::request::Request;

/// How deep tools may call tools.
const DEEPEST: usize = 8;

/// The host as one call sees it.
pub(crate) struct Guard(pub Arc<Call>);

impl Guard {
    fn refused(&self, path: &str) -> Option<HostError> {
        let effects = self.0.spec().side_effects;
        let Some(row) = functions::find(path) else {
            return Some(HostError::new("NOT_CONFIGURED", format!("there is no capability `{path}`")));
        };
        (effects < row.needs).then(|| {
            let message =
                format!("`{path}` needs `sideEffects: {}`; the tool declares `{effects}`", row.needs);
            HostError::new("NOT_ALLOWED", message)
        })
    }

    /// An intent that is asked for by function. A stub may refuse it.
    fn ask(&self, path: &str, args: Vec<Value>, intent: Value) -> HostFuture {
        let call = Arc::clone(&self.0);
        let stubbed = matches!(call.backing, Backing::Stub(_)).then(|| call.backing.call(&call, path, args));
        Box::pin(async move {
            if let Some(answer) = stubbed {
                answer.await?;
            }
            call.asked().intents.push(intent);
            Ok(Value::Null)
        })
    }
}

/// Runs a tool that a handler calls, unless it would never end or do more than the caller may.
pub(crate) async fn call_tool(call: &Arc<Call>, name: &str, args: Value) -> Result<Envelope, HostError> {
    let forbidden = |why: String| Err(HostError::new("NOT_ALLOWED", why));
    if call.callers().any(|caller| caller == name) {
        let mut chain: Vec<&str> = call.callers().collect();
        chain.reverse();
        return forbidden(format!("`{name}` is being called already: {}", chain.join(" → ")));
    }
    if call.callers().count() >= DEEPEST {
        return forbidden(format!("tools call tools at most {DEEPEST} deep"));
    }
    let effects = call.runtime.toolset().get(name).map(|tool| tool.spec.side_effects);
    if let Some(effects) = effects.filter(|effects| *effects > call.spec().side_effects) {
        return forbidden(format!("`{name}` has `sideEffects: {effects}`, more than the calling tool"));
    }
    let number = {
        let mut asked = call.asked();
        asked.nested += 1;
        asked.nested
    };
    // A second attempt must not be answered with what the first one came to.
    let id = match call.attempt {
        0 => format!("{}.{number}", call.execution_id),
        attempt => format!("{}.r{attempt}.{number}", call.execution_id),
    };
    let session = match &call.caller {
        Caller::Of { orchestrator, session, .. } => {
            return Ok(orchestrator.nested(Arc::clone(call), session, name, args, id).await);
        }
        Caller::Given(session) => Arc::clone(session),
    };
    let (tool, cancel, now) = (name.to_owned(), call.cancel().clone(), call.now);
    let request = Request { tool, args, execution_id: id, session, cancel, now };
    Ok(call.runtime.execute_within(request, None, Some(Arc::clone(call))).await)
}

impl Host for Guard {
    fn call(&self, path: &str, mut args: Vec<Value>) -> HostFuture {
        if let Some(error) = self.refused(path) {
            return Box::pin(ready(Err(error)));
        }
        match path {
            "callTool" if matches!(self.0.backing, Backing::Served(_)) => {
                let call = Arc::clone(&self.0);
                let Some(name) = args.first().and_then(Value::as_str).map(str::to_owned) else {
                    let error = HostError::new("INVALID_ARGUMENT", "callTool needs the tool's name");
                    return Box::pin(ready(Err(error)));
                };
                let args = if args.len() > 1 { args.swap_remove(1) } else { Value::Object(Map::new()) };
                Box::pin(async move {
                    let envelope = call_tool(&call, &name, args).await?;
                    serde_json::to_value(&envelope)
                        .map_err(|error| HostError::new("INVALID_ARGUMENT", error.to_string()))
                })
            }
            "voice.endSession" => {
                let after = args.first().and_then(|options| options.get("after")).cloned();
                let after = after.unwrap_or_else(|| "current_turn".into());
                self.ask(path, args, json!({ "type": "END_VOICE_SESSION", "after": after }))
            }
            "audio.suppress" => {
                let value = args.first().and_then(Value::as_bool).unwrap_or(true);
                self.ask(path, args, json!({ "type": "SUPPRESS_AUDIO", "value": value }))
            }
            _ => self.0.backing.call(&self.0, path, args),
        }
    }

    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        match self.refused(path) {
            Some(error) => Err(error),
            None if path == "voice.isActive" => Ok(Value::Bool(self.0.caller.mode() == Mode::Voice)),
            None => self.0.backing.call_sync(&self.0, path, args),
        }
    }

    fn console(&self, level: Level, text: String) {
        self.0.backing.console(&self.0, level, text);
    }
}
