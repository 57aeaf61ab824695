//! Calls host functions: the arguments go to the server as JSON, the result comes back as a promise or a value.
use std::io;

use rquickjs::{Array, Ctx, Error, Object, Promise, Result, Value};

use super::{
    bridge::{PromiseSettlers, bridge_of},
    json_in,
    json_out::{self, ConvertError},
    text,
};
use crate::{
    call::{FunctionKind, HostError},
    message::{FromWorker, HostResult},
};

pub(crate) fn start<'js>(ctx: &Ctx<'js>, function: usize, given: &Array<'js>) -> Result<Value<'js>> {
    let parts = bridge_of(ctx)?.parts.clone();
    let kind = parts.functions.get(function).ok_or(Error::Unknown)?.kind;
    let arguments = arguments(ctx, given, parts.input()?.output_bytes);
    let id = parts.next_id();
    let send = |args| {
        parts.connection.send(&FromWorker::HostCall { id, function, args }).map_err(exit_without_server)
    };
    match kind {
        FunctionKind::Sync => {
            let result = match arguments? {
                Ok(arguments) => {
                    send(arguments)?;
                    parts.connection.receive_result(id).map_err(exit_without_server)?
                }
                Err(error) => Err(error),
            };
            match result {
                Ok(value) => json_in::value(ctx, &value),
                Err(error) => Err(ctx.throw(error_object(ctx, &error, &call_stack(ctx))?)),
            }
        }
        FunctionKind::Async => {
            let (promise, resolve, reject) = ctx.promise()?;
            let settle = PromiseSettlers { resolve, reject, stack: call_stack(ctx) };
            match arguments {
                Ok(Ok(_)) if parts.aborted.get() => {
                    settle.settle(ctx, Err(HostError::new("CANCELLED", "the call was cancelled")))?;
                }
                Ok(Ok(arguments)) => {
                    send(arguments)?;
                    bridge_of(ctx)?.state.borrow_mut().pending.insert(id, settle);
                }
                Ok(Err(error)) => settle.settle(ctx, Err(error))?,
                // A getter of an argument threw: an async function rejects instead of throwing.
                Err(Error::Exception) => settle.reject.call::<_, ()>((ctx.catch(),))?,
                Err(error) => return Err(error),
            }
            Ok(Promise::into_value(promise))
        }
    }
}

/// The server is gone: exit.
fn exit_without_server(_: io::Error) -> Error {
    std::process::exit(0)
}

/// The arguments as JSON. The inner error is for the handler.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    given: &Array<'js>,
    limit: usize,
) -> Result<std::result::Result<Vec<serde_json::Value>, HostError>> {
    let invalid = |message: String| Ok(Err(HostError::new("INVALID_ARGUMENT", message)));
    match json_out::arguments(ctx, given, limit) {
        Ok(arguments) => Ok(Ok(arguments)),
        Err(ConvertError::TooLarge) => invalid("the arguments are too large".to_owned()),
        Err(ConvertError::Bad(what)) => invalid(format!("the arguments contain {what}, which is not JSON")),
        Err(ConvertError::Thrown(error)) => Err(error),
    }
}

/// Settles the promise of a host call.
pub(crate) fn deliver(ctx: &Ctx<'_>, id: u32, result: HostResult) -> Result<()> {
    let settle = bridge_of(ctx)?.state.borrow_mut().pending.remove(&id);
    settle.map_or(Ok(()), |settle| settle.settle(ctx, result))
}

impl<'js> PromiseSettlers<'js> {
    fn settle(&self, ctx: &Ctx<'js>, result: HostResult) -> Result<()> {
        match result {
            Ok(value) => match json_in::value(ctx, &value) {
                Ok(value) => self.resolve.call((value,)),
                // The handler may catch that its result cannot be converted.
                Err(Error::Exception) => self.reject.call((ctx.catch(),)),
                Err(error) => Err(error),
            },
            Err(error) => self.reject.call((error_object(ctx, &error, &self.stack)?,)),
        }
    }
}

/// The frames of the handler that lead to the host call. When the error arrives, they are no longer on the stack.
fn call_stack(ctx: &Ctx<'_>) -> String {
    let created = bridge_of(ctx).and_then(|bridge| bridge.host_error.call::<_, Object<'_>>(("", "")));
    match created {
        Ok(error) => text::handler_frames(&text::member(&error, "stack").unwrap_or_default()),
        Err(_) => {
            ctx.catch();
            String::new()
        }
    }
}

fn error_object<'js>(ctx: &Ctx<'js>, error: &HostError, stack: &str) -> Result<Value<'js>> {
    let HostError { code, message, retry_after_ms } = error;
    bridge_of(ctx)?.host_error.call((message.as_str(), code.as_str(), *retry_after_ms, stack))
}
