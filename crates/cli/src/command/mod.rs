//! One file a subcommand.

mod audit;
mod build;
mod calendar;
mod call;
mod check;
mod confirm;
mod describe;
mod doctor;
mod explain;
mod git;
mod init;
mod kb;
mod kb_model;
mod keys;
mod list;
mod mcp;
mod new;
mod pin;
mod pip;
mod prompt;
mod schema;
mod serve;
mod template;
mod test;
mod unblock;
mod views;
mod watch;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Args, Command, Mcp, McpCommand};

/// Runs the subcommand.
pub fn run(args: Args) -> Result<ExitCode> {
    let common = &args.common;
    match args.command {
        Command::Build(build) => build::run(common, &build),
        Command::Check(check) => check::run(common, &check),
        Command::Explain { code } => explain::run(code.as_deref()),
        Command::New(new) => new::run(common, &new),
        Command::Init { dir } => init::run(&dir),
        Command::List(list) => list::run(common, &list),
        Command::Describe { tool, source } => describe::run(common, &tool, &source),
        Command::Call(call) => call::run(common, &call),
        Command::Confirmations(args) => confirm::list(common, &args),
        Command::Approve(args) => confirm::approve(common, &args),
        Command::Deny(args) => confirm::deny(common, &args),
        Command::Unblock(args) => unblock::run(common, &args),
        Command::Kb { what } => kb::run(common, &what),
        Command::Audit { what } => audit::run(common, &what),
        Command::Calendar { what } => calendar::run(common, &what),
        Command::Test(test) => test::run(common, &test),
        Command::Schema(schema) => schema::run(common, &schema),
        Command::Serve(serve) => serve::run(common, &serve),
        Command::Mcp(Mcp { what: Some(McpCommand::Pin(pin)), .. }) => pin::run(common, &pin),
        Command::Mcp(mcp) => mcp::run(common, &mcp),
        Command::Doctor => doctor::run(common),
        Command::Keys { keys, what } => keys::run(common, keys, what),
        Command::Prompt { mode, source } => prompt::run(common, mode, &source),
    }
}
