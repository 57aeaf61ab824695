//! `toolwright`: parses the command line, runs one subcommand, sets the exit code. Nothing else.

mod args;
mod capabilities;
mod command;
mod config;
mod imports;
mod log;
mod output;
mod progress;
mod record;
mod report;
mod store;
mod toolset;

use std::process::ExitCode;

use clap::Parser;

/// Many small allocations on several threads are what a build does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The allocator asks for huge pages, of which most processes fill a fraction: twice the memory, and no time saved.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let args = args::Args::parse();
    // A server's log has a form that is configured; it begins when that is known.
    if !matches!(args.command, args::Command::Serve(_)) {
        log::start();
    }
    match command::run(args) {
        Ok(code) => output::finish(code),
        Err(error) => output::fail(&error),
    }
}
