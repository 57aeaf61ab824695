//! The idle workers. Each serves one program; a call gets a worker that has already made its realm, if there is one.
use std::{
    collections::VecDeque,
    io::{self, Read},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    call::HostFunction,
    failure::Failure,
    message::{FromWorker, HEADER_BYTES, ToWorker, decode, encode, encoded_length},
    program::Program,
    spawner::{Spawner, Worker},
};

/// After this many calls a worker is replaced.
const MAX_CALLS_OF_WORKER: u32 = 1000;

pub(crate) struct Pool {
    worker: Option<PathBuf>,
    functions: Arc<[HostFunction]>,
    max_idle: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spawner: Option<Arc<Spawner>>,
    /// The one that was used least recently is first: it has had the most time to make its realm.
    idle: VecDeque<Worker>,
}

/// Whether an idle worker can take a call at once.
#[derive(PartialEq, Eq)]
enum Readiness {
    Ready,
    MakesRealm,
    Lost,
}

impl Pool {
    pub fn new(worker: Option<PathBuf>, functions: Arc<[HostFunction]>, max_idle: usize) -> Self {
        Self { worker, functions, max_idle, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the spawner and one worker, unless they are there.
    pub fn warm_up(&self) -> Result<(), Failure> {
        let mut state = self.state();
        if state.idle.is_empty() {
            let spare = self.fork(&mut state)?;
            state.idle.push_back(spare);
        }
        Ok(())
    }

    /// A worker that serves the program.
    pub fn take(&self, program: &Arc<Program>) -> Result<Worker, Failure> {
        let mut state = self.state();
        let state = &mut *state;
        if let Some((worker, ready)) = take_bound(&mut state.idle, program) {
            let others = state.idle.iter().any(|other| serves(other, program));
            if !ready && !others {
                // The next call need not wait for a realm either.
                let spare = self.take_unbound_worker(state, program)?;
                state.idle.push_back(spare);
            }
            return Ok(worker);
        }
        let worker = self.take_unbound_worker(state, program)?;
        // The next new program finds a process that exists already.
        if state.idle.iter().all(|idle| idle.program.is_some()) {
            let spare = self.fork(state)?;
            state.idle.push_front(spare);
        }
        Ok(worker)
    }

    /// Keeps a worker for the next call of its program.
    pub fn put_back(&self, worker: Worker) {
        if worker.calls >= MAX_CALLS_OF_WORKER {
            return;
        }
        let mut state = self.state();
        state.idle.push_back(worker);
        let evicted = (state.idle.len() > self.max_idle).then(|| state.idle.pop_front());
        drop(state);
        drop(evicted);
    }

    /// A worker without a program, bound to this one.
    fn take_unbound_worker(&self, state: &mut State, program: &Arc<Program>) -> Result<Worker, Failure> {
        let unbound = state.idle.iter().position(|worker| worker.program.is_none());
        let mut worker = match unbound.and_then(|at| state.idle.remove(at)) {
            Some(worker) if readiness(&worker) != Readiness::Lost => worker,
            _ => self.fork(state)?,
        };
        let load = ToWorker::Load(program.modules.clone());
        let bound = encode(&load, &mut worker.unsent).and_then(|()| worker.flush());
        bound.map_err(|error| Failure::NoWorker(error.to_string()))?;
        worker.program = Some(Arc::clone(program));
        Ok(worker)
    }

    fn fork(&self, state: &mut State) -> Result<Worker, Failure> {
        let no_worker = |error: io::Error| Failure::NoWorker(error.to_string());
        if state.spawner.as_ref().is_some_and(|spawner| spawner.is_lost()) {
            state.spawner = None;
            state.idle.clear();
        }
        let spawner = match &state.spawner {
            Some(spawner) => spawner,
            None => {
                let Some(worker) = &self.worker else {
                    return Err(Failure::NoWorker("none is configured".to_owned()));
                };
                state.spawner.insert(Spawner::start(worker, &self.functions).map_err(no_worker)?)
            }
        };
        spawner.fork().map_err(no_worker)
    }
}

fn serves(worker: &Worker, program: &Arc<Program>) -> bool {
    worker.program.as_ref().is_some_and(|own| Arc::ptr_eq(own, program))
}

/// The first idle worker of a program that is ready, or else the first; and whether it is ready.
fn take_bound(idle: &mut VecDeque<Worker>, program: &Arc<Program>) -> Option<(Worker, bool)> {
    let mut first = None;
    let mut at = 0;
    while at < idle.len() {
        if serves(&idle[at], program) {
            match readiness(&idle[at]) {
                Readiness::Ready => return idle.remove(at).map(|worker| (worker, true)),
                Readiness::MakesRealm => first = first.or(Some(at)),
                Readiness::Lost => {
                    idle.remove(at);
                    continue;
                }
            }
        }
        at += 1;
    }
    idle.remove(first?).map(|worker| (worker, false))
}

/// Reads what an idle worker has sent: nothing but `Ready` is allowed.
fn readiness(worker: &Worker) -> Readiness {
    let mut buffer = [0; 64];
    let Some(mut socket) = worker.socket.as_ref() else { return Readiness::Lost };
    match socket.read(&mut buffer) {
        Ok(count) if encoded_length(&buffer[..count]) == Some(count) => {
            match decode(&buffer[HEADER_BYTES..count]) {
                Ok(FromWorker::Ready) => Readiness::Ready,
                _ => Readiness::Lost,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Readiness::MakesRealm,
        _ => Readiness::Lost,
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
