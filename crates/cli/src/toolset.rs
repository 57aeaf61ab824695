//! A toolset for the commands that look at one: from an artifact, or compiled in memory.

use std::path::Path;

use anyhow::Result;
use toolwright_registry::build::{Options, Progress, Timestamp, compile};
use toolwright_registry::toolset::Toolset;

use crate::args::Source;
use crate::output::Failure;
use crate::report;

/// Reads the artifact that is named, or compiles the tools directory without writing anything.
pub fn open(source: &Source, tools: &Path) -> Result<Toolset> {
    if let Some(artifact) = &source.artifact {
        return Ok(Toolset::load(artifact).map_err(|error| Failure::new(&error, error.help()))?);
    }
    let options = Options { tools: tools.to_owned(), out: tools.join("tool_registry.json"), cache: None };
    let compilation =
        compile(options, &Progress::default()).map_err(|error| Failure::new(&error, error.help()))?;
    if !compilation.is_ok() {
        report::show(tools, &compilation.diagnostics);
        let message = format!("the tools do not build: {}", report::count(&compilation.diagnostics));
        return Err(Failure::new(message, "mend them, then try again").into());
    }
    let bytes = compilation.to_bytes(None, &Timestamp::Now(String::new()))?;
    Ok(Toolset::from_text(String::from_utf8(bytes)?)?)
}
