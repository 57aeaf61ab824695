//! One call in its realm: loads the handler, calls it, and handles events until its promise has settled.
use std::{
    process::exit,
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{Ctx, Error, Function, Object, Promise, Value, object::Property};
use serde_json::Value as Json;

use super::{
    bridge::{RealmParts, bridge_of},
    compile::Compiled,
    cpu_time, host_call, json_in,
    json_out::{self, ConvertError},
    realm::Realm,
    rquickjs_unsafe, thrown_value,
};
use crate::{
    call::Level,
    failure::Failure,
    message::{CallInput, ToWorker},
};

/// How many jobs run between two checks of the limits; short jobs never reach the interpreter's own check.
const JOBS_BETWEEN_CHECKS: usize = 64;
/// The CPU time of abort listeners.
const ABORT_CPU: Duration = Duration::from_millis(20);

/// Runs a call to its end.
pub(crate) fn run(realm: &Realm, program: &Rc<Compiled>, input: CallInput) -> Result<Json, Failure> {
    let parts = &realm.parts;
    realm.meter.set_limit(input.memory_bytes);
    realm.runtime.set_max_stack_size(input.stack_bytes);
    let input = Rc::new(input);
    parts.input.replace(Some(Rc::clone(&input)));
    parts.clock.start(Duration::from_micros(input.cpu_micros));
    realm.context.with(|ctx| {
        let run = HandlerRun { ctx: &ctx, realm, parts };
        run.call(program, &input).unwrap_or_else(|error| Err(run.failure(&error)))
    })
}

struct HandlerRun<'a, 'js> {
    ctx: &'a Ctx<'js>,
    realm: &'a Realm,
    parts: &'a Rc<RealmParts>,
}

impl<'js> HandlerRun<'_, 'js> {
    fn call(&self, program: &Compiled, input: &CallInput) -> rquickjs::Result<Result<Json, Failure>> {
        let ctx = self.ctx;
        let (fix_clock, freeze, parameter) = {
            let bridge = bridge_of(ctx)?;
            (bridge.fix_clock.clone(), bridge.freeze.clone(), bridge.parameter.clone())
        };
        if let Some(now) = input.now {
            fix_clock.call::<_, ()>((now as f64,))?;
        }
        self.fill_context(&parameter.get("context")?, &input.context, &freeze)?;
        parameter.set("args", json_in::value(ctx, &input.args)?)?;
        let loaded = bridge_of(ctx)?.state.borrow_mut().handler.take();
        let handler = loaded.map_or_else(|| rquickjs_unsafe::load(ctx, program.entry()), Ok)?;
        let (module, evaluated) = handler.eval()?;
        let namespace = module.namespace()?;
        if let Err(failure) = self.wait_for_promise(&evaluated)? {
            return Ok(Err(failure));
        }
        let Some(execute) = namespace.get::<_, Value<'js>>("execute")?.into_function() else {
            return Ok(Err(Failure::Load("the handler exports no function `execute`".to_owned())));
        };
        let promise = self.execute(&execute, parameter)?;
        Ok(self.wait_for_promise(&promise)?.and_then(|value| self.result(value, input.output_bytes)))
    }

    /// Adds the data of the call to `context` and freezes it. Host functions of the same name stay.
    fn fill_context(
        &self,
        context: &Object<'js>,
        data: &Json,
        freeze: &Function<'js>,
    ) -> rquickjs::Result<()> {
        let functions = &self.parts.functions;
        let is_function = |name: &str| functions.iter().any(|function| function.group_or_name() == name);
        for (name, member) in data.as_object().into_iter().flatten() {
            if name != "signal" && !is_function(name) {
                let member = json_in::frozen(self.ctx, member, freeze)?;
                context.prop(name.as_str(), Property::from(member).enumerable())?;
            }
        }
        freeze.call((context.clone(),))
    }

    /// Calls the handler, and wraps its result in a promise unless it is one.
    fn execute(&self, execute: &Function<'js>, parameter: Object<'js>) -> rquickjs::Result<Promise<'js>> {
        let returned: Value<'js> = execute.call((parameter,))?;
        match returned.try_into_promise() {
            Ok(promise) => Ok(promise),
            Err(other) => bridge_of(self.ctx)?.settle.clone().call((other,)),
        }
    }

    /// Runs jobs, timers and results of host calls until the promise has settled.
    fn wait_for_promise(&self, promise: &Promise<'js>) -> rquickjs::Result<Result<Value<'js>, Failure>> {
        loop {
            self.run_jobs();
            if self.parts.clock.is_exceeded() {
                return Ok(Err(Failure::CpuTime));
            }
            if let Some(settled) = promise.result::<Value<'js>>() {
                return settled.map(Ok);
            }
            if !bridge_of(self.ctx)?.has_open_calls() {
                // A job that QuickJS could not allocate is lost, so that the promise stays pending.
                let starved = self.realm.meter.has_refused();
                return Ok(Err(if starved { Failure::Memory } else { Failure::NeverSettles }));
            }
            self.handle_event()?;
        }
    }

    fn run_jobs(&self) {
        let mut done = 0_usize;
        while self.ctx.execute_pending_job() {
            done += 1;
            let clock = &self.parts.clock;
            if clock.is_exceeded() || done.is_multiple_of(JOBS_BETWEEN_CHECKS) && clock.must_stop() {
                return;
            }
        }
    }

    /// Waits for the next timer or message.
    fn handle_event(&self) -> rquickjs::Result<()> {
        let timer = bridge_of(self.ctx)?.state.borrow().timers.first().copied();
        let connection = &self.parts.connection;
        match connection.receive_until(timer.map(|(time, _)| time)) {
            Ok(Some(ToWorker::HostResult { id, result })) => host_call::deliver(self.ctx, id, result),
            Ok(Some(ToWorker::Abort(reason))) => self.abort(&reason),
            Ok(None) => self.run_timer(timer),
            // The server is gone, or has sent a second call, which is an error: exit.
            Err(_) | Ok(Some(ToWorker::Load(_) | ToWorker::Call(_))) => exit(1),
        }
    }

    fn run_timer(&self, timer: Option<(Instant, u32)>) -> rquickjs::Result<()> {
        let Some(timer) = timer else { return Ok(()) };
        let fire = {
            let bridge = bridge_of(self.ctx)?;
            bridge.state.borrow_mut().timers.remove(&timer);
            bridge.fire.clone()
        };
        self.report(fire.call::<_, ()>((timer.1,)), "a timer");
        Ok(())
    }

    /// Runs the abort listeners and the jobs that they start, and ends the process.
    fn abort(&self, reason: &str) -> rquickjs::Result<()> {
        self.parts.aborted.set(true);
        self.parts.clock.start(ABORT_CPU);
        cpu_time::limit(ABORT_CPU * 2);
        let abort = bridge_of(self.ctx)?.abort.clone();
        self.report(abort.call::<_, ()>((reason,)), "an abort listener");
        self.run_jobs();
        exit(0)
    }

    /// Logs the error of a callback, like a browser. The call continues.
    fn report(&self, outcome: rquickjs::Result<()>, place: &str) {
        let Err(error) = outcome else { return };
        let failure = self.failure(&error);
        if !self.parts.clock.is_exceeded() {
            let _ = self.parts.write_line(Level::Error, format!("uncaught in {place}: {failure}"));
        }
    }

    fn result(&self, value: Value<'js>, output_bytes: usize) -> Result<Json, Failure> {
        let walked = json_out::result(self.ctx, &value, output_bytes);
        // A stop during the conversion, in a getter or `toJSON`, has precedence.
        if self.parts.clock.is_exceeded() {
            return Err(Failure::CpuTime);
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
        let refused = self.realm.meter.has_refused();
        if self.parts.clock.is_exceeded() {
            return Failure::CpuTime;
        }
        let failure = match error {
            Error::Exception => thrown_value::failure(self.ctx, &thrown, refused),
            Error::Allocation => Failure::Memory,
            _ if refused => Failure::Memory,
            _ => Failure::EngineLost,
        };
        // Reading the thrown value may have run getters of the handler.
        if self.parts.clock.is_exceeded() { Failure::CpuTime } else { failure }
    }
}
