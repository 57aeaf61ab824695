//! `toolwright.toml`: defaults < file < environment < flags, layered here and nowhere else.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolwright_contract::Mode;
use toolwright_registry::prompt::Limits;

use crate::args::Common;
use crate::output::Failure;

const FILE_NAME: &str = "toolwright.toml";

/// The settings in force.
#[derive(Debug)]
pub struct Config {
    pub tools: PathBuf,
    pub prompts: PathBuf,
    limits: LimitsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    tools: ToolsFile,
    prompts: PromptsFile,
    limits: LimitsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolsFile {
    dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PromptsFile {
    dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LimitsFile {
    voice: ModeLimitsFile,
    text: ModeLimitsFile,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModeLimitsFile {
    retrieval_calls: Option<u32>,
    top_k: Option<u32>,
    retrieval_soft_limit_ms: Option<u32>,
}

impl Config {
    /// Reads the file, if there is one, and lets the flags (and their environment variables) win.
    /// Paths in the file are relative to the file.
    pub fn load(common: &Common, dir: Option<&Path>) -> Result<Self, Failure> {
        let (file, base) = read(common.config.as_deref())?;
        let from_file =
            |path: Option<PathBuf>, default: &str| base.join(path.unwrap_or_else(|| default.into()));
        let flag = dir.or(common.tools.as_deref()).map(Path::to_owned);
        Ok(Self {
            tools: flag.unwrap_or_else(|| from_file(file.tools.dir, "tools")),
            prompts: from_file(file.prompts.dir, "prompts"),
            limits: file.limits,
        })
    }

    /// The numbers in force for a mode.
    pub fn limits(&self, mode: Mode) -> Limits {
        let default = Limits::of(mode);
        let file = match mode {
            Mode::Voice => self.limits.voice,
            Mode::Text => self.limits.text,
        };
        Limits {
            retrieval_calls: file.retrieval_calls.unwrap_or(default.retrieval_calls),
            top_k: file.top_k.unwrap_or(default.top_k),
            retrieval_soft_limit_ms: file.retrieval_soft_limit_ms.unwrap_or(default.retrieval_soft_limit_ms),
        }
    }
}

fn read(named: Option<&Path>) -> Result<(File, PathBuf), Failure> {
    let path = named.unwrap_or(Path::new(FILE_NAME));
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((File::default(), base));
        }
        Err(error) => {
            let message = format!("cannot read the configuration {}: {error}", path.display());
            return Err(Failure::usage(
                message,
                "name an existing file with `--config FILE`, or leave it out",
            ));
        }
    };
    let file = toml::from_str(&text).map_err(|error| {
        let message =
            format!("the configuration {} is not valid\n{}", path.display(), error.to_string().trim_end());
        Failure::new(message, "docs/configuration.md lists every setting")
    })?;
    Ok((file, base))
}
