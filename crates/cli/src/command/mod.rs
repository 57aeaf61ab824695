//! One file per subcommand: its options and its code.

pub mod audit;
mod audit_list;
pub mod build;
pub mod calendar;
pub mod call;
pub mod chat;
pub mod check;
pub mod confirm;
pub mod describe;
mod doctor;
mod editor;
pub mod explain;
mod git;
pub mod init;
pub mod kb;
mod kb_model;
pub mod keys;
pub mod list;
mod local_mcp;
pub mod mcp;
pub mod new;
mod pin;
mod pip;
pub mod prompt;
pub mod schema;
pub mod serve;
mod serve_checks;
pub mod sessions;
pub mod tasks;
mod template;
pub mod test;
pub mod toolsets;
pub mod unblock;
mod views;
pub mod voice;
mod watch;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Args, Command};
use crate::config::Config;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<ExitCode> {
    let common = &args.common;
    let config = || Config::load(common, None);
    match args.command {
        Command::Build(args) => build::run(common, &args),
        Command::Check(args) => check::run(common, &args),
        Command::Explain(args) => explain::run(&args).map(succeed),
        Command::New(args) => new::run(&config()?, &args).map(succeed),
        Command::Init(args) => init::run(&args).map(succeed),
        Command::List(args) => list::run(&config()?, &args).map(succeed),
        Command::Describe(args) => describe::run(&config()?, &args).map(succeed),
        Command::Call(args) => call::run(&config()?, &args),
        Command::Confirmations(args) => confirm::list(&config()?, &args).map(succeed),
        Command::Approve(args) => confirm::approve(&config()?, &args),
        Command::Reject(args) => confirm::reject(&config()?, &args).map(succeed),
        Command::Unblock(args) => unblock::run(&config()?, &args).map(succeed),
        Command::Sessions(command) => sessions::run(&config()?, &command).map(succeed),
        Command::Tasks(command) => tasks::run(&config()?, &command).map(succeed),
        Command::Toolsets(command) => toolsets::run(&config()?, &command).map(succeed),
        Command::Test(args) => test::run(common, &args),
        Command::Kb(command) => kb::run(&config()?, &command),
        Command::Audit(command) => audit::run(&config()?, &command).map(succeed),
        Command::Calendar(command) => calendar::run(&config()?, &command).map(succeed),
        Command::Chat(args) => chat::run(&config()?, &args),
        Command::Voice(args) => voice::run(&config()?, &args),
        Command::Serve(args) => serve::run(config()?, &args),
        Command::Mcp(args) => mcp::run(config()?, &args),
        Command::Keys(args) => keys::run(&config()?, args).map(succeed),
        Command::Doctor => doctor::run(common),
        Command::Prompt(args) => prompt::run(&config()?, &args).map(succeed),
        Command::Schema(args) => schema::run(&config()?, &args).map(succeed),
    }
}

fn succeed((): ()) -> ExitCode {
    ExitCode::SUCCESS
}
