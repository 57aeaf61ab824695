//! Calls host functions: converts the arguments to JSON, and the result to a promise or a value.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context as TaskContext, Poll, Waker},
};

use rquickjs::{Array, Ctx, Error, Promise, Result, Value};

use crate::{
    bridge::{Bridge, Settle, call_host_of},
    call::{FunctionKind, HostError, HostFuture},
    host::{CallHost, HostResult, poll_guarded},
    json_in, json_out,
    json_out::ConvertError,
};

pub(crate) fn start<'js>(ctx: &Ctx<'js>, index: usize, given: &Array<'js>) -> Result<Value<'js>> {
    let call_host = call_host_of(ctx)?;
    let function = call_host.functions.get(index).ok_or(Error::Unknown)?;
    let arguments = arguments(ctx, &call_host, given);
    match function.kind {
        FunctionKind::Sync => {
            let result = arguments?.and_then(|arguments| {
                catch_unwind(AssertUnwindSafe(|| call_host.host.call_sync(&function.path, arguments)))
                    .unwrap_or_else(|_| Err(HostError::new("INTERNAL", "the capability failed")))
            });
            match result {
                Ok(value) => json_in::value(ctx, &value),
                Err(error) => Err(ctx.throw(error_object(ctx, &error)?)),
            }
        }
        FunctionKind::Async => {
            let (promise, resolve, reject) = ctx.promise()?;
            let settle = Settle { resolve, reject };
            match arguments {
                Ok(Ok(arguments)) => send(ctx, &call_host, &function.path, arguments, settle)?,
                Ok(Err(error)) => settle.with(ctx, Err(error))?,
                // A getter of an argument threw: an async function rejects instead of throwing.
                Err(Error::Exception) => settle.reject.call::<_, ()>((ctx.catch(),))?,
                Err(error) => return Err(error),
            }
            Ok(Promise::into_value(promise))
        }
    }
}

/// The arguments as JSON. The inner error is for the handler.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    call_host: &CallHost,
    given: &Array<'js>,
) -> Result<std::result::Result<Vec<serde_json::Value>, HostError>> {
    let pending = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?.state.borrow().pending.len();
    if let Err(error) = call_host.count_host_call(pending) {
        return Ok(Err(error));
    }
    match json_out::arguments(ctx, given, call_host.limits.output_bytes) {
        Ok(arguments) => Ok(Ok(arguments)),
        Err(ConvertError::TooLarge) => {
            Ok(Err(HostError::new("INVALID_ARGUMENT", "the arguments are too large")))
        }
        Err(ConvertError::Bad(what)) => Ok(Err(HostError::new(
            "INVALID_ARGUMENT",
            format!("the arguments contain {what}, which is not JSON"),
        ))),
        Err(ConvertError::Thrown(error)) => Err(error),
    }
}

/// Polls once before spawning: many capabilities finish at once, which saves two thread switches.
fn send<'js>(
    ctx: &Ctx<'js>,
    call_host: &CallHost,
    path: &str,
    arguments: Vec<serde_json::Value>,
    settle: Settle<'js>,
) -> Result<()> {
    if call_host.control.runs_abort_listeners() {
        return settle.with(ctx, Err(HostError::new("CANCELLED", "the call was cancelled")));
    }
    let entered = call_host.runtime.enter();
    let made = catch_unwind(AssertUnwindSafe(|| call_host.host.call(path, arguments)));
    let Ok(mut future): std::result::Result<HostFuture, _> = made else {
        return settle.with(ctx, Err(HostError::new("INTERNAL", "the capability failed")));
    };
    // The runtime polls again with its own waker, so this one may do nothing.
    let first = poll_guarded(&mut future, &mut TaskContext::from_waker(Waker::noop()));
    drop(entered);
    match first {
        Poll::Ready(result) => settle.with(ctx, result),
        Poll::Pending => {
            let id = call_host.next_id() + 1;
            let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
            bridge.state.borrow_mut().pending.insert(id, settle);
            call_host.await_result(id, future);
            Ok(())
        }
    }
}

/// Settles the promise of a host call, if it is still pending.
pub(crate) fn deliver<'js>(ctx: &Ctx<'js>, id: u32, result: HostResult) -> Result<()> {
    let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    let settle = bridge.state.borrow_mut().pending.remove(&id);
    call_host_of(ctx)?.cancel_job(id);
    match settle {
        Some(settle) => settle.with(ctx, result),
        None => Ok(()),
    }
}

impl<'js> Settle<'js> {
    pub fn with(&self, ctx: &Ctx<'js>, result: HostResult) -> Result<()> {
        match result {
            Ok(value) => self.resolve.call((json_in::value(ctx, &value)?,)),
            Err(error) => self.reject.call((error_object(ctx, &error)?,)),
        }
    }
}

fn error_object<'js>(ctx: &Ctx<'js>, error: &HostError) -> Result<Value<'js>> {
    let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    bridge.host_error.call((error.message.as_str(), error.code.as_str()))
}
