//! `toolwright prompt`: prints the system prompt of a session.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolwright_contract::Mode;
use toolwright_registry::prompt::{PromptFiles, compose};

use crate::args::{Format, Source, parse_mode};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::toolset;
use crate::viewer::Viewer;

/// Print the system prompt of a session
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwright prompt --mode voice\n  toolwright prompt --mode text --role staff"
)]
pub struct Prompt {
    /// The session's mode
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Mode,
    #[command(flatten)]
    viewer: Viewer,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Prompt) -> Result<()> {
    let mode = args.mode;
    let core = read(&config.settings.prompts.dir, "core.md")?;
    let voice_behavior = match mode {
        Mode::Voice => read(&config.settings.prompts.dir, "voice-behavior.md")?,
        Mode::Text => String::new(),
    };
    let tools = Arc::new(toolset::load(&args.source, config)?);
    let visible = args.viewer.visible(&tools, Some(mode), config)?;
    let files = PromptFiles { core, voice_behavior };
    let listed = tools.for_models(|tool| tool.spec.allowed_modes.contains(&mode) && visible.has(&tool.spec));
    let prompt = compose(&tools.version, listed, mode, &files, config.settings.limits.for_mode(mode).0);
    match config.format {
        Format::Human => output::print(prompt),
        Format::Json => {
            output::print_line(json!({ "mode": mode, "version": tools.version, "prompt": prompt }))
        }
    }
    Ok(())
}

/// A file of the prompts. A project without their directory has a prompt of its tools alone.
fn read(dir: &Path, name: &str) -> Result<String, Failure> {
    if !dir.exists() {
        let dir = dir.display();
        output::warning(format_args!("there is no directory {dir}: the prompt has no instructions of yours"));
        output::help(format_args!("write {dir}/{name}, or name another directory with `[prompts] dir`"));
        return Ok(String::new());
    }
    let path = dir.join(name);
    std::fs::read_to_string(&path).map_err(|error| {
        Failure::new(
            format!("cannot read the prompt file {}: {error}", path.display()),
            "create it, or name the directory of prompts in toolwright.toml: `[prompts] dir = \"…\"`",
        )
    })
}
