//! Host functions: out as JSON, back as a settled promise or a value.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context as TaskContext, Poll, Waker},
};

use rquickjs::{Array, Ctx, Error, Promise, Result, Value};

use crate::{
    bridge::{Bridge, Settle, side_of},
    call::{HostError, HostFuture, Kind},
    json_in, json_out,
    json_out::Refusal,
    side::{Answer, Side, poll_guarded},
};

pub(crate) fn start<'js>(ctx: &Ctx<'js>, index: usize, given: &Array<'js>) -> Result<Value<'js>> {
    let side = side_of(ctx)?;
    let function = side.functions.get(index).ok_or(Error::Unknown)?;
    let arguments = arguments(ctx, &side, given);
    match function.kind {
        Kind::Sync => {
            let answer = arguments?.and_then(|arguments| {
                catch_unwind(AssertUnwindSafe(|| side.host.call_sync(&function.path, arguments)))
                    .unwrap_or_else(|_| Err(HostError::new("INTERNAL", "the capability failed")))
            });
            match answer {
                Ok(value) => json_in::value(ctx, &value),
                Err(error) => Err(ctx.throw(error_object(ctx, &error)?)),
            }
        }
        Kind::Async => {
            let (promise, resolve, reject) = ctx.promise()?;
            let settle = Settle { resolve, reject };
            match arguments {
                Ok(Ok(arguments)) => send(ctx, &side, &function.path, arguments, settle)?,
                Ok(Err(error)) => settle.with(ctx, Err(error))?,
                // A getter of an argument threw: an async function rejects instead of throwing.
                Err(Error::Exception) => settle.reject.call::<_, ()>((ctx.catch(),))?,
                Err(error) => return Err(error),
            }
            Ok(Promise::into_value(promise))
        }
    }
}

/// The arguments as JSON; the inner error is one that the handler is told.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    side: &Side,
    given: &Array<'js>,
) -> Result<std::result::Result<Vec<serde_json::Value>, HostError>> {
    let pending = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?.state.borrow().pending.len();
    if let Err(error) = side.admit_host_call(pending) {
        return Ok(Err(error));
    }
    match json_out::arguments(ctx, given, side.limits.output_bytes) {
        Ok(arguments) => Ok(Ok(arguments)),
        Err(Refusal::TooLarge) => Ok(Err(HostError::new("INVALID_ARGUMENT", "the arguments are too large"))),
        Err(Refusal::Bad(what)) => Ok(Err(HostError::new(
            "INVALID_ARGUMENT",
            format!("the arguments hold {what}, which is not JSON"),
        ))),
        Err(Refusal::Thrown(error)) => Err(error),
    }
}

/// Many capabilities answer at once: the first poll happens here, which saves them two changes of thread.
fn send<'js>(
    ctx: &Ctx<'js>,
    side: &Side,
    path: &str,
    arguments: Vec<serde_json::Value>,
    settle: Settle<'js>,
) -> Result<()> {
    if side.control.in_epilogue() {
        return settle.with(ctx, Err(HostError::new("CANCELLED", "the call was cancelled")));
    }
    let entered = side.runtime.enter();
    let made = catch_unwind(AssertUnwindSafe(|| side.host.call(path, arguments)));
    let Ok(mut future): std::result::Result<HostFuture, _> = made else {
        return settle.with(ctx, Err(HostError::new("INTERNAL", "the capability failed")));
    };
    // The runtime polls again at once with a waker of its own, so nothing is lost by this one doing nothing.
    let first = poll_guarded(&mut future, &mut TaskContext::from_waker(Waker::noop()));
    drop(entered);
    match first {
        Poll::Ready(answer) => settle.with(ctx, answer),
        Poll::Pending => {
            let id = side.next_id() + 1;
            let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
            bridge.state.borrow_mut().pending.insert(id, settle);
            side.await_answer(id, future);
            Ok(())
        }
    }
}

/// Brings an answer to the promise that waits for it, if one still does.
pub(crate) fn deliver<'js>(ctx: &Ctx<'js>, id: u32, answer: Answer) -> Result<()> {
    let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    let settle = bridge.state.borrow_mut().pending.remove(&id);
    side_of(ctx)?.forget(id);
    match settle {
        Some(settle) => settle.with(ctx, answer),
        None => Ok(()),
    }
}

impl<'js> Settle<'js> {
    pub fn with(&self, ctx: &Ctx<'js>, answer: Answer) -> Result<()> {
        match answer {
            Ok(value) => self.resolve.call((json_in::value(ctx, &value)?,)),
            Err(error) => self.reject.call((error_object(ctx, &error)?,)),
        }
    }
}

fn error_object<'js>(ctx: &Ctx<'js>, error: &HostError) -> Result<Value<'js>> {
    let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    bridge.host_error.call((error.message.as_str(), error.code.as_str()))
}
