//! `toolwright prompt`: prints the system prompt of a session.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolwright_contract::Mode;
use toolwright_registry::prompt::{PromptFiles, compose};

use crate::args::{Format, Source, parse_mode};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::toolset;

/// Print the system prompt of a session
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright prompt --mode voice")]
pub struct Prompt {
    /// The session's mode
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Mode,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Prompt) -> Result<()> {
    let mode = args.mode;
    let core = read(&config.settings.prompts.dir.join("core.md"))?;
    let voice_behavior = match mode {
        Mode::Voice => read(&config.settings.prompts.dir.join("voice-behavior.md"))?,
        Mode::Text => String::new(),
    };
    let tools = toolset::load(&args.source, config)?;
    let files = PromptFiles { core: &core, voice_behavior: &voice_behavior };
    let prompt = compose(&tools, mode, None, files, config.settings.limits.for_mode(mode).0);
    match config.format {
        Format::Human => output::print(prompt),
        Format::Json => {
            output::print_line(json!({ "mode": mode, "version": tools.version, "prompt": prompt }))
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            format!("cannot read the prompt file {}: {error}", path.display()),
            "create it, or name the directory of prompts in toolwright.toml: `[prompts] dir = \"…\"`",
        )
    })
}
