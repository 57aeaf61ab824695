//! Two servers on one database are sent the same calls at the same time: each call runs once, and both have its answer.

use std::collections::HashMap;

use serde_json::Value;

use crate::killing::{postgres, seed};
use crate::ledger::Ledger;
use crate::log::Answer;
use crate::orders::{Orders, Task};
use crate::plan::Id;
use crate::process::Process;
use crate::worker::READY;

const CALLS: usize = 500;
/// So long that nobody is taken for dead who is only slow.
const LEASE_MS: u64 = 60_000;

#[test]
fn two_servers_that_are_sent_the_same_calls_at_once_run_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let (seed, place) = (seed(), postgres(LEASE_MS));
    let mut processes = Vec::new();
    for generation in [1, 2] {
        // A place of its own: the logs are read together afterwards.
        let own = directory.path().join(generation.to_string());
        std::fs::create_dir(&own).unwrap();
        let task = Task::Twin { calls: CALLS };
        let process = Process::start(&own, &Orders { seed, generation, place: place.clone(), task });
        process.wait_for(READY);
        processes.push(process);
    }
    processes.iter_mut().for_each(Process::tell_to_go);
    processes.into_iter().for_each(Process::wait);
    let mut ledgers = [1, 2].map(|own: u64| Ledger::new(seed, &directory.path().join(own.to_string())));
    ledgers.iter_mut().for_each(Ledger::read);
    compare(seed, &ledgers);
}

fn compare(seed: u64, ledgers: &[Ledger; 2]) {
    let mut ran = HashMap::<u64, usize>::new();
    for id in Id::plain(seed, CALLS) {
        let effects: Vec<_> = ledgers.iter().flat_map(|ledger| ledger.effects(id)).collect();
        assert_eq!(effects.len(), 1, "{id}: {effects:?}");
        let data: Vec<&Value> = ledgers.iter().map(|ledger| answer(ledger, id)).collect();
        assert_eq!(data[0], data[1], "{id}");
        *ran.entry(effects[0].generation).or_default() += 1;
    }
    println!("{CALLS} calls to both of two servers; by server: {ran:?}");
}

fn answer(ledger: &Ledger, id: Id) -> &Value {
    match &ledger.calls[&id].answers[..] {
        [(_, Answer::Ok { data, .. })] => data,
        others => panic!("{id}: {others:?}"),
    }
}
