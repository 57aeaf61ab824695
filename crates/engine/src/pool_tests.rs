//! Which program a worker serves.
#![allow(clippy::unwrap_used)]
use std::collections::HashMap;

use super::*;
use crate::program::Source;

/// The harness owns `main`, so a constructor makes this program its own worker.
#[ctor::ctor(unsafe)]
fn be_worker() {
    crate::run_if_worker();
}

fn program(name: &str) -> Arc<Program> {
    let text = format!("export async function execute() {{ return '{name}'; }}");
    let source = Source { path: "handler.js".to_owned(), text };
    Arc::new(Program::new(name.to_owned(), vec![source]))
}

#[test]
fn a_process_serves_one_program_only() {
    let pool = Pool::new(Some(std::env::current_exe().unwrap()), Arc::default(), 64);
    let programs = ["a", "b", "c"].map(program);
    let mut program_of_process = HashMap::new();
    for round in 0..60 {
        // In sequence, and two at a time.
        let held = [round, round / 7].map(|at| (at % 3, pool.take(&programs[at % 3]).unwrap()));
        for (program, worker) in held {
            let first = *program_of_process.entry(worker.id).or_insert(program);
            assert_eq!(first, program, "process {} in round {round}", worker.id);
            pool.put_back(worker);
        }
    }
    assert!((3..60).contains(&program_of_process.len()), "processes are used again: {program_of_process:?}");
}
