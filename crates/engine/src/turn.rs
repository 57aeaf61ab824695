//! One turn of a call: from what woke it until there is nothing left to do in the realm.
use std::sync::Arc;

use rquickjs::{Ctx, Error, Function, Promise, Value};
use serde_json::Value as Json;

use crate::{
    bridge::{Bridge, Phase},
    call::Level,
    control::Stop,
    failure::Failure,
    host_call, json_in,
    json_out::{self, Refusal},
    program::Compiled,
    raw,
    realm::Realm,
    side::Side,
    task::{Event, Input},
    thrown,
};

pub(crate) enum Progress {
    /// For a host call or a timer.
    Waiting,
    Settled(Result<Json, Failure>),
}

/// How often the clock is read between jobs; jobs may be too short for the interpreter to ask.
const JOBS_BETWEEN_CHECKS: usize = 64;

/// Loads the handler in its fresh realm and calls it.
pub(crate) fn start(
    realm: &mut Realm,
    side: &Arc<Side>,
    compiled: &Arc<Compiled>,
    input: &Input,
) -> Progress {
    realm.adopt(side, compiled);
    let realm = &*realm;
    realm.context.with(|ctx| {
        let turn = Turn { ctx: &ctx, side, realm };
        match turn.load(compiled.entry(), input) {
            Ok(()) => turn.run(),
            Err(error) => Progress::Settled(Err(turn.failure(&error))),
        }
    })
}

/// Goes on with what has arrived meanwhile.
pub(crate) fn resume(realm: &Realm, side: &Arc<Side>, events: Vec<Event>) -> Progress {
    realm.context.with(|ctx| {
        let turn = Turn { ctx: &ctx, side, realm };
        for event in events {
            if let Err(error) = turn.take(event) {
                return Progress::Settled(Err(turn.failure(&error)));
            }
        }
        turn.run()
    })
}

struct Turn<'a, 'js> {
    ctx: &'a Ctx<'js>,
    side: &'a Arc<Side>,
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

    fn take(&self, event: Event) -> rquickjs::Result<()> {
        let ctx = self.ctx;
        match event {
            Event::Answer { id, answer } => host_call::deliver(ctx, id, answer),
            Event::Timer(id) => {
                let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
                if !bridge.state.borrow_mut().timers.remove(&id) {
                    return Ok(());
                }
                self.side.forget(id);
                let fired = bridge.fire.call::<_, ()>((id,));
                self.report(fired, "a timer");
                Ok(())
            }
            Event::Abort => {
                let bridge = ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
                let reason = match self.side.control.stopped() {
                    Some(Stop::Deadline) => "deadline",
                    _ => "cancelled",
                };
                let told = bridge.abort.call::<_, ()>((reason,));
                self.report(told, "an abort listener");
                Ok(())
            }
        }
    }

    /// Nobody awaits a callback: what it throws goes to the log, as in a browser, and the call goes on.
    fn report(&self, outcome: rquickjs::Result<()>, place: &str) {
        let Err(error) = outcome else { return };
        let failure = self.failure(&error);
        if self.side.control.stopped().is_none() {
            self.side.write_line(Level::Error, format!("uncaught in {place}: {failure}"));
        }
    }

    fn run(&self) -> Progress {
        loop {
            self.run_jobs();
            if let (Some(stop), false) = (self.side.control.stopped(), self.side.control.in_epilogue()) {
                return self.stopped(stop);
            }
            match self.advance() {
                Ok(Some(progress)) => return progress,
                Ok(None) => {}
                Err(error) => return Progress::Settled(Err(self.failure(&error))),
            }
        }
    }

    /// A call that is stopped while it is quiet waits for its abort event, so that its listeners still run.
    fn stopped(&self, stop: Stop) -> Progress {
        let outside = matches!(stop, Stop::Cancelled | Stop::Deadline);
        if outside && !self.side.control.was_interrupted() {
            Progress::Waiting
        } else {
            Progress::Settled(Err(stop.failure()))
        }
    }

    fn run_jobs(&self) {
        let mut done = 0_usize;
        while self.ctx.execute_pending_job() {
            done += 1;
            let control = &self.side.control;
            if control.stopped().is_some() && !control.in_epilogue() {
                return;
            }
            if done.is_multiple_of(JOBS_BETWEEN_CHECKS) && control.must_stop() {
                return;
            }
        }
    }

    /// After all jobs: goes on to the next phase (`None`), waits, or has come to an end.
    fn advance(&self) -> rquickjs::Result<Option<Progress>> {
        let bridge = self.ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
        let phase = bridge.state.borrow().phase.clone();
        let promise = match &phase {
            Phase::Loading { evaluated, .. } => evaluated,
            Phase::Running(promise) => promise,
            Phase::Idle => return Err(Error::Unknown),
        };
        let Some(settled) = promise.result::<Value<'js>>() else {
            return Ok(Some(if bridge.waits() { Progress::Waiting } else { self.never() }));
        };
        let value = settled?;
        if let Phase::Loading { namespace, .. } = phase {
            let execute: Value<'js> = namespace.get("execute")?;
            let Some(execute) = execute.into_function() else {
                let why = "the handler exports no function execute".to_owned();
                return Ok(Some(Progress::Settled(Err(Failure::Load(why)))));
            };
            let promise = self.call(&execute, &bridge)?;
            bridge.state.borrow_mut().phase = Phase::Running(promise);
            return Ok(None);
        }
        Ok(Some(Progress::Settled(self.result(value))))
    }

    /// A job that finds no memory is lost, and with it what would have settled the promise.
    fn never(&self) -> Progress {
        let starved = self.realm.meter().has_refused();
        Progress::Settled(Err(if starved { Failure::Memory } else { Failure::NeverSettles }))
    }

    /// A promise is watched as it is; whatever else comes back is given the form of one.
    fn call(&self, execute: &Function<'js>, bridge: &Bridge<'js>) -> rquickjs::Result<Promise<'js>> {
        let answer: Value<'js> = execute.call((bridge.parameter.clone(),))?;
        match answer.try_into_promise() {
            Ok(promise) => Ok(promise),
            Err(other) => bridge.settle.call((other,)),
        }
    }

    fn result(&self, value: Value<'js>) -> Result<Json, Failure> {
        let walked = json_out::result(self.ctx, &value, self.side.limits.output_bytes);
        // A breach during the walk, in a getter or `toJSON`, counts before whatever the walk made of it.
        if let Some(stop) = self.side.control.stopped() {
            return Err(stop.failure());
        }
        walked.map_err(|refusal| match refusal {
            Refusal::TooLarge => Failure::OutputTooLarge,
            Refusal::Bad(what) => Failure::BadResult(what),
            Refusal::Thrown(error) => self.failure(&error),
        })
    }

    /// What an error of the binding means to the caller.
    fn failure(&self, error: &Error) -> Failure {
        let thrown = self.ctx.catch();
        if let Some(stop) = self.side.control.stopped() {
            return stop.failure();
        }
        let failure = match error {
            _ if self.realm.has_panicked() => Failure::EngineLost,
            Error::Exception => thrown::failure(self.ctx, &thrown, self.realm.meter().has_refused()),
            Error::Allocation => Failure::Memory,
            _ if self.realm.meter().has_refused() => Failure::Memory,
            _ => Failure::EngineLost,
        };
        // Describing it may have run getters of the handler.
        self.side.control.stopped().map_or(failure, Stop::failure)
    }
}
