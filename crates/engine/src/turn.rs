//! One turn of a call: handles its events and runs the realm's jobs until none is left.
use std::sync::Arc;

use rquickjs::{Ctx, Error, Function, Promise, Value};
use serde_json::Value as Json;

use crate::{
    bridge::{Bridge, Phase},
    call::Level,
    control::Stop,
    failure::Failure,
    host::CallHost,
    host_call, json_in,
    json_out::{self, ConvertError},
    program::Compiled,
    raw,
    realm::Realm,
    task::{Event, Input},
    thrown,
};

pub(crate) enum Progress {
    /// Waits for a host call or a timer.
    Waiting,
    Settled(Result<Json, Failure>),
}

/// How many jobs run between two checks of the limits; short jobs never reach the interpreter's own check.
const JOBS_BETWEEN_CHECKS: usize = 64;

/// Loads the handler in its realm and calls it.
pub(crate) fn start(
    realm: &mut Realm,
    call_host: &Arc<CallHost>,
    compiled: &Arc<Compiled>,
    input: &Input,
) -> Progress {
    realm.bind_call(call_host, compiled);
    let realm = &*realm;
    realm.context.with(|ctx| {
        let turn = Turn { ctx: &ctx, call_host, realm };
        match turn.load(compiled.entry(), input) {
            Ok(()) => turn.run(),
            Err(error) => Progress::Settled(Err(turn.failure(&error))),
        }
    })
}

/// Continues with the events that have arrived.
pub(crate) fn resume(realm: &Realm, call_host: &Arc<CallHost>, events: Vec<Event>) -> Progress {
    realm.context.with(|ctx| {
        let turn = Turn { ctx: &ctx, call_host, realm };
        for event in events {
            if let Err(error) = turn.handle_event(event) {
                return Progress::Settled(Err(turn.failure(&error)));
            }
        }
        turn.run()
    })
}

struct Turn<'a, 'js> {
    ctx: &'a Ctx<'js>,
    call_host: &'a Arc<CallHost>,
    realm: &'a Realm,
}

impl<'js> Turn<'_, 'js> {
    fn load(&self, entry: &[u8], input: &Input) -> rquickjs::Result<()> {
        let ctx = self.ctx;
        let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
        if let Some(now) = input.now {
            bridge.fix_clock.call::<_, ()>((now as f64,))?;
        }
        json_in::add_to_context(ctx, &bridge.context, &input.context)?;
        bridge.parameter.set("args", json_in::value(ctx, &input.args)?)?;
        let read = bridge.entry.borrow().clone();
        let entry = match read {
            Some(entry) => entry,
            None => raw::load(ctx, entry)?,
        };
        let (module, evaluated) = entry.eval()?;
        let namespace = module.namespace()?;
        bridge.state.borrow_mut().phase = Phase::Loading { namespace, evaluated };
        Ok(())
    }

    fn handle_event(&self, event: Event) -> rquickjs::Result<()> {
        let ctx = self.ctx;
        match event {
            Event::HostResult { id, result } => host_call::deliver(ctx, id, result),
            Event::Timer(id) => {
                let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
                if !bridge.state.borrow_mut().timers.remove(&id) {
                    return Ok(());
                }
                self.call_host.cancel_job(id);
                let fired = bridge.fire.call::<_, ()>((id,));
                self.report(fired, "a timer");
                Ok(())
            }
            Event::Abort => {
                let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
                let reason = match self.call_host.control.stopped() {
                    Some(Stop::Deadline) => "deadline",
                    _ => "cancelled",
                };
                let called = bridge.abort.call::<_, ()>((reason,));
                self.report(called, "an abort listener");
                Ok(())
            }
        }
    }

    /// Logs the error of a callback, like a browser. The call continues.
    fn report(&self, outcome: rquickjs::Result<()>, place: &str) {
        let Err(error) = outcome else { return };
        let failure = self.failure(&error);
        if self.call_host.control.stopped().is_none() {
            self.call_host.write_line(Level::Error, format!("uncaught in {place}: {failure}"));
        }
    }

    fn run(&self) -> Progress {
        loop {
            self.run_jobs();
            if let (Some(stop), false) =
                (self.call_host.control.stopped(), self.call_host.control.runs_abort_listeners())
            {
                return self.stopped(stop);
            }
            match self.advance() {
                Ok(Some(progress)) => return progress,
                Ok(None) => {}
                Err(error) => return Progress::Settled(Err(self.failure(&error))),
            }
        }
    }

    /// A call that is stopped between turns waits for its abort event, so that its listeners run.
    fn stopped(&self, stop: Stop) -> Progress {
        let outside = matches!(stop, Stop::Cancelled | Stop::Deadline);
        if outside && !self.call_host.control.was_interrupted() {
            Progress::Waiting
        } else {
            Progress::Settled(Err(stop.failure()))
        }
    }

    fn run_jobs(&self) {
        let mut done = 0_usize;
        while self.ctx.execute_pending_job() {
            done += 1;
            let control = &self.call_host.control;
            if control.stopped().is_some() && !control.runs_abort_listeners() {
                return;
            }
            if done.is_multiple_of(JOBS_BETWEEN_CHECKS) && control.must_stop() {
                return;
            }
        }
    }

    /// After all jobs: moves to the next phase (`None`), waits or ends.
    fn advance(&self) -> rquickjs::Result<Option<Progress>> {
        let bridge = self.ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
        let phase = bridge.state.borrow().phase.clone();
        let promise = match &phase {
            Phase::Loading { evaluated, .. } => evaluated,
            Phase::Running(promise) => promise,
            Phase::Idle => return Err(Error::Unknown),
        };
        let Some(settled) = promise.result::<Value<'js>>() else {
            return Ok(Some(if bridge.waits() { Progress::Waiting } else { self.never_settles() }));
        };
        let value = settled?;
        if let Phase::Loading { namespace, .. } = phase {
            let execute: Value<'js> = namespace.get("execute")?;
            let Some(execute) = execute.into_function() else {
                let why = "the handler exports no function `execute`".to_owned();
                return Ok(Some(Progress::Settled(Err(Failure::Load(why)))));
            };
            let promise = self.call(&execute, &bridge)?;
            bridge.state.borrow_mut().phase = Phase::Running(promise);
            return Ok(None);
        }
        Ok(Some(Progress::Settled(self.result(value))))
    }

    /// A job that QuickJS could not allocate is lost, so that the promise stays pending.
    fn never_settles(&self) -> Progress {
        let starved = self.realm.meter().has_refused();
        Progress::Settled(Err(if starved { Failure::Memory } else { Failure::NeverSettles }))
    }

    /// Calls the handler, and wraps its result in a promise unless it is one.
    fn call(&self, execute: &Function<'js>, bridge: &Bridge<'js>) -> rquickjs::Result<Promise<'js>> {
        let returned: Value<'js> = execute.call((bridge.parameter.clone(),))?;
        match returned.try_into_promise() {
            Ok(promise) => Ok(promise),
            Err(other) => bridge.settle.call((other,)),
        }
    }

    fn result(&self, value: Value<'js>) -> Result<Json, Failure> {
        let walked = json_out::result(self.ctx, &value, self.call_host.limits.output_bytes);
        // A stop during the conversion, in a getter or `toJSON`, has precedence.
        if let Some(stop) = self.call_host.control.stopped() {
            return Err(stop.failure());
        }
        walked.map_err(|error| match error {
            ConvertError::TooLarge => Failure::OutputTooLarge,
            ConvertError::Bad(what) => Failure::BadResult(what),
            ConvertError::Thrown(error) => self.failure(&error),
        })
    }

    /// Converts an error of rquickjs.
    fn failure(&self, error: &Error) -> Failure {
        let thrown = self.ctx.catch();
        if let Some(stop) = self.call_host.control.stopped() {
            return stop.failure();
        }
        let failure = match error {
            _ if self.realm.has_panicked() => Failure::EngineLost,
            Error::Exception => thrown::failure(self.ctx, &thrown, self.realm.meter().has_refused()),
            Error::Allocation => Failure::Memory,
            _ if self.realm.meter().has_refused() => Failure::Memory,
            _ => Failure::EngineLost,
        };
        // Reading the thrown value may have run getters of the handler.
        self.call_host.control.stopped().map_or(failure, Stop::failure)
    }
}
