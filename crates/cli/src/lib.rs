//! Toolwright for Rust programs: re-exports the other crates under one name. It also holds the code of the program
//! `toolwright`, which parses the command line, runs one subcommand and sets the exit code.

#![allow(clippy::disallowed_methods, reason = "the command line owns environment, clock and processes")]

mod args;
mod call_target;
mod capabilities;
mod chat_target;
mod command;
mod config;
mod console_kb;
mod imports;
mod log;
mod output;
mod progress;
mod read_only_store;
mod report;
mod server_client;
mod server_file;
mod store;
mod toolset;
mod viewer;
mod voice;

use std::process::ExitCode;

pub use toolwright_contract as contract;
pub use toolwright_orchestrator as orchestrator;
pub use toolwright_providers as providers;
pub use toolwright_registry as registry;
pub use toolwright_schema as schema;
pub use toolwright_server as server;

/// Runs the program `toolwright` with the arguments of this process.
#[doc(hidden)]
pub fn run_program() -> ExitCode {
    orchestrator::run_if_worker();
    // mimalloc would use transparent huge pages, which double the memory and save no time here.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let args = args::parse();
    // `serve` starts its log itself, when the configured format is known.
    if !matches!(args.command, args::Command::Serve(_)) {
        log::start();
    }
    match command::run(args) {
        Ok(code) => output::exit_code(code),
        Err(error) => output::report(&error),
    }
}

/// Compiles the examples of the page, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/embed-in-rust.md")]
struct EmbedInRust;
