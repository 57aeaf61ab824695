//! Two servers on one database receive the same calls at the same time: each call runs once, and both return its
//! result.

use std::collections::HashMap;

use serde_json::Value;

use crate::instructions::{Instructions, Task};
use crate::killing::{postgres, seed};
use crate::ledger::Ledger;
use crate::log::Answer;
use crate::plan::Id;
use crate::process::Process;
use crate::worker::READY;

const CALLS: usize = 500;
/// So long that a slow process does not count as dead.
const LEASE_MS: u64 = 60_000;

#[test]
fn two_servers_that_receive_the_same_calls_run_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let (seed, location) = (seed(), postgres(LEASE_MS));
    let mut processes = Vec::new();
    for generation in [1, 2] {
        // A directory of its own: the logs are compared afterwards.
        let own = directory.path().join(generation.to_string());
        std::fs::create_dir(&own).unwrap();
        let task = Task::Race { calls: CALLS };
        let process =
            Process::start(&own, &Instructions { seed, generation, location: location.clone(), task });
        process.wait_for(READY);
        processes.push(process);
    }
    processes.iter_mut().for_each(Process::start_calls);
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
