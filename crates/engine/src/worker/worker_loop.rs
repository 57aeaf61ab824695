//! The loop of a worker: a handler, then its calls, one after the other, each in a new realm.
use std::{
    cell::Cell,
    convert::Infallible,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    process::exit,
    rc::Rc,
    thread::yield_now,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    compile::{Compiled, compile},
    connection::Connection,
    cpu_clock::process_cpu,
    cpu_time, handler_run,
    realm::Realm,
};
use crate::{
    call::HostFunction,
    failure::Failure,
    message::{CallInput, FromWorker, ToWorker},
};

/// The memory that native code may use for a call beside the realm's: conversions, messages, the allocator's own
/// blocks.
const NATIVE_BYTES: u64 = 32 << 20;
/// A worker whose call used more memory is replaced, so that idle workers stay small.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// The interpreter stops a call at its limit; this much later the process exits.
const NATIVE_CPU: Duration = Duration::from_millis(20);

/// Serves calls until the server closes the socket.
pub(crate) fn run(
    connection: Connection,
    functions: &[HostFunction],
    base_bytes: u64,
) -> io::Result<Infallible> {
    cpu_time::handle_timer();
    let mut worker = Worker {
        connection: Rc::new(connection),
        functions: functions.into(),
        base_bytes,
        data_limit: Cell::new(0),
        cpu_limit: Cell::new(0),
        program: Err("no handler was loaded".to_owned()),
    };
    let mut realm = worker.realm();
    loop {
        match worker.connection.receive()? {
            ToWorker::Load(modules) => {
                worker.program = compile(&modules).map(Rc::new);
                worker.load_into(realm.as_ref());
                worker.connection.send(&FromWorker::Ready)?;
            }
            ToWorker::Call(input) => {
                worker.call(realm, input)?;
                realm = worker.realm();
                worker.connection.send(&FromWorker::Ready)?;
            }
            // Results of host calls that the last handler did not await.
            ToWorker::HostResult { .. } | ToWorker::Abort(_) => {}
        }
    }
}

struct Worker {
    connection: Rc<Connection>,
    functions: Rc<[HostFunction]>,
    base_bytes: u64,
    /// The soft limits in force, in bytes and seconds.
    data_limit: Cell<u64>,
    cpu_limit: Cell<u64>,
    program: Result<Rc<Compiled>, String>,
}

impl Worker {
    /// A new realm, with the handler if there is one already.
    fn realm(&self) -> Option<Realm> {
        let realm = Realm::new(Rc::clone(&self.connection), Rc::clone(&self.functions)).ok();
        self.load_into(realm.as_ref());
        realm
    }

    fn load_into(&self, realm: Option<&Realm>) {
        if let (Some(realm), Ok(program)) = (realm, &self.program) {
            realm.load(program);
        }
    }

    /// Runs a call, sends its result, and ends the realm.
    fn call(&self, realm: Option<Realm>, input: CallInput) -> io::Result<()> {
        let cpu = Duration::from_micros(input.cpu_micros);
        let data_bytes = self.base_bytes + input.memory_bytes as u64 + NATIVE_BYTES;
        set_soft_limit(Resource::Data, &self.data_limit, data_bytes);
        // In case that the timer's signal does not arrive.
        set_soft_limit(Resource::Cpu, &self.cpu_limit, (process_cpu() + cpu).as_secs() + 2);
        cpu_time::limit(cpu + NATIVE_CPU);
        let result = match (&self.program, &realm) {
            (Err(why), _) => Err(Failure::Load(why.clone())),
            (Ok(program), Some(realm)) => {
                let run = || handler_run::run(realm, program, input);
                catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Failure::EngineLost))
            }
            (Ok(_), None) => Err(Failure::EngineLost),
        };
        cpu_time::end_limit();
        // After a refused allocation QuickJS runs rarely tested code, so the process is not used again.
        let intact = realm
            .as_ref()
            .is_some_and(|realm| !realm.meter.has_refused() && realm.meter.peak() <= MAX_KEPT_BYTES);
        let is_lost = matches!(result, Err(Failure::EngineLost | Failure::CpuTime | Failure::Memory));
        let reusable = intact && !is_lost && !cpu_time::has_reduced_priority();
        self.connection.send(&FromWorker::Done { result, reusable })?;
        if !reusable {
            exit(0);
        }
        // The server is often on the same processor, and would wait for it until the next realm is made.
        yield_now();
        if let Some(realm) = realm {
            realm.discard();
        }
        Ok(())
    }
}

/// Sets a limit, unless it is in force already.
fn set_soft_limit(resource: Resource, current: &Cell<u64>, limit: u64) {
    if current.replace(limit) == limit {
        return;
    }
    let maximum = getrlimit(resource).maximum;
    let _ = setrlimit(resource, Rlimit { current: Some(limit.min(maximum.unwrap_or(limit))), maximum });
}
