//! The checks of `doctor` about what `serve` needs to start: the agent's model, voice, and the server itself.

use std::net::TcpListener;

use toolwright_agent::Model;
use toolwright_server::Error;
use toolwright_server::auth::keys::KeyFile;

use super::doctor::CheckResult;
use crate::config::{AgentFlags, Config, url_of};
use crate::output::Failure;
use crate::server_file::ServerFile;
use crate::toolset;

/// The model of the agent: its key must be set, and a local Ollama must have it.
pub fn check_agent(config: &Config) -> CheckResult {
    let flags = AgentFlags::from_environment();
    let runtime = match toolset::async_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return CheckResult::broken(error.to_string(), "raise the system's limit of threads"),
    };
    let (model, problem) = match runtime.block_on(config.model_of_agent(&flags)) {
        Ok(found) => found,
        Err(failure) => return failure.into(),
    };
    match (model, problem) {
        (_, Some(Failure { message, help, .. })) => CheckResult::broken(message, help),
        (Model::Offline, None) if config.names_agent(&flags) => {
            CheckResult::ok("offline: it quotes the knowledge base")
        }
        (Model::Offline, None) => CheckResult::missing(
            "no model is configured: the offline agent quotes the knowledge base",
            "set `[agent]` or OPENAI_API_KEY (docs/how-to/chat.md has examples)",
        ),
        (model, None) => CheckResult::ok(format!("{} of {}", model.name(), model.provider())),
    }
}

/// The provider of voice sessions: its address and its key.
pub fn check_voice(config: &Config) -> CheckResult {
    match (config.check_voice(), &config.settings.voice.provider) {
        (Err(failure), _) => failure.into(),
        (Ok(()), Some(provider)) => CheckResult::ok(format!("voice clients talk to {provider}")),
        (Ok(()), None) => CheckResult::ok("not used: `[voice]` names no provider"),
    }
}

/// The settings of `serve`, its keys, and the address that it listens on.
pub fn check_server(config: &Config) -> CheckResult {
    let checked = config.server_from_environment().and_then(|server| Ok((server.auth()?, server)));
    let (auth, server) = match checked {
        Ok(checked) => checked,
        Err(error) => return error.into(),
    };
    if let Err(failure) = server.collector() {
        return failure.into();
    }
    if let Err(error) = KeyFile::new(&server.section.keys).current() {
        return CheckResult::broken(error.to_string(), "restore the file from a backup, or move it away");
    }
    let listen = server.section.listen;
    if !listen.ip().is_loopback() && auth.is_open() {
        let error = Error::Unprotected(listen);
        return CheckResult::broken(error.to_string(), error.help());
    }
    let access = if auth.is_open() { "no keys: anyone on this machine" } else { "keys are required" };
    let Err(error) = TcpListener::bind(listen) else {
        return CheckResult::ok(format!("can listen on {listen} ({access})"));
    };
    let running = ServerFile::path(&config.store).and_then(|path| ServerFile::read(&path));
    match running.filter(|file| file.url == url_of(listen)) {
        Some(file) => CheckResult::ok(format!("runs on {} (process {}; {access})", file.url, file.process)),
        None => {
            let error = Error::Listen(listen, error);
            CheckResult::broken(error.to_string(), error.help())
        }
    }
}
