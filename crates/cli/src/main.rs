//! `toolwright`: parses the command line, runs one subcommand, sets the exit code. Nothing else.

mod args;
mod command;
mod config;
mod output;
mod progress;
mod report;
mod toolset;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match command::run(args) {
        Ok(code) => code,
        Err(error) => output::fail(&error),
    }
}
