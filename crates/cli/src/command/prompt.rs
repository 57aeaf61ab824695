//! `toolwright prompt`: the system prompt that a session gets.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use toolwright_contract::Mode;
use toolwright_registry::prompt::{Words, compose};

use crate::args::{Common, Format, Source};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::toolset;

pub fn run(common: &Common, mode: Mode, source: &Source) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let core = read(&config.prompts.join("core.md"))?;
    let voice_behavior =
        if mode == Mode::Voice { read(&config.prompts.join("voice-behavior.md"))? } else { String::new() };
    let tools = toolset::open(source, &config)?;
    let words = Words { core: &core, voice_behavior: &voice_behavior };
    let prompt = compose(&tools, mode, None, words, config.limits(mode));
    match common.format {
        Format::Human => output::data(prompt),
        Format::Json => {
            let value = serde_json::json!({"mode": mode, "version": tools.version, "prompt": prompt});
            output::data_line(value);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            format!("cannot read the prompt file {}: {error}", path.display()),
            "create it, or name the directory of prompts in toolwright.toml: `[prompts] dir = \"…\"`",
        )
    })
}
