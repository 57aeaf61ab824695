//! A toolset for the commands that look at one or run it: from an artifact, or compiled in memory, with the tools
//! that the configuration declares.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use toolwright_contract::suggest::nearest;
use toolwright_orchestrator::Runtime;
use toolwright_registry::build::{Options, Progress, Timestamp, compile};
use toolwright_registry::declared;
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::args::{Common, Format, Source};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::report;

/// Reads the artifact that is named, or compiles the tools directory without writing anything.
pub fn open(source: &Source, config: &Config) -> Result<Toolset> {
    Ok(counted(source, config, &Imports::load(config)?)?.0)
}

/// The toolset, ready to be called.
pub fn runtime(source: &Source, config: &Config) -> Result<Runtime> {
    Runtime::begin();
    let imports = Imports::load(config)?;
    ready(counted(source, config, &imports)?.0, source, config, &imports)
}

/// As [`runtime`], for one call: a person is told how many warnings there are, and imported tools can be waited for.
pub fn runtime_told(common: &Common, source: &Source, config: &Config) -> Result<(Runtime, Imports)> {
    Runtime::begin();
    let imports = Imports::load(config)?;
    let (toolset, warnings) = counted(source, config, &imports)?;
    if warnings > 0 && common.format == Format::Human {
        let warnings = report::plural(warnings, "warning");
        output::message(format_args!(
            "\x1b[1;33mwarning\x1b[0m: the tools build with {warnings}; see `toolwright check`"
        ));
    }
    Ok((ready(toolset, source, config, &imports)?, imports))
}

/// The toolset, and how many warnings it was compiled with.
fn counted(source: &Source, config: &Config, imports: &Imports) -> Result<(Toolset, usize)> {
    let (built, warnings) = match &source.artifact {
        Some(artifact) => (Toolset::load(artifact).map_err(|error| Failure::new(&error, error.help()))?, 0),
        // Declared and imported tools alone are a toolset too.
        None if config.has_only_other_tools() => (Toolset::empty(), 0),
        None => compiled(&config.tools)?,
    };
    // Native handlers are registered by programs that embed Toolwright; this one has none.
    let whole = Whole::of(built, config, imports, &|_| false);
    whole.refused.iter().for_each(|refused| tracing::error!("{refused}; {}", refused.help));
    Ok((whole.toolset, warnings))
}

fn ready(toolset: Toolset, source: &Source, config: &Config, imports: &Imports) -> Result<Runtime> {
    if let Some(name) = config.tools_with_settings().find(|name| toolset.get(name).is_none()) {
        let help = match nearest(&name.replace('-', "_"), toolset.ids()) {
            Some(near) => format!("did you mean `[tool.{near}]`?"),
            None => "name the table by the tool's id; `toolwright list` names them all".to_owned(),
        };
        return Err(Failure::new(format!("`[tool.{name}]` is about a tool that does not exist"), help).into());
    }
    let artifact_dir = source.artifact.as_deref().and_then(Path::parent);
    let builder =
        Runtime::builder(Arc::new(toolset), artifact_dir.unwrap_or(&config.tools)).limits(config.handlers());
    let builder = builder.capabilities(config.capabilities());
    let builder = imports.register(builder);
    let runtime = config
        .allowed()?
        .into_iter()
        .fold(builder, |builder, (tool, list)| builder.allow(tool, list))
        .build();
    runtime.start();
    Ok(runtime)
}

/// What async work of a command runs on.
pub fn tokio() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// The id that is meant: as it is written, or as the name of a tool's directory.
pub fn id_of(tools: &Toolset, name: &str) -> String {
    if tools.get(name).is_some() { name.to_owned() } else { name.replace('-', "_") }
}

/// There is no such tool; perhaps it is a slip.
pub fn unknown(tools: &Toolset, name: &str) -> Failure {
    let help = match nearest(name, tools.ids()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`toolwright list` names them all".to_owned(),
    };
    Failure::new(format!("there is no tool `{name}`"), help)
}

fn compiled(tools: &Path) -> Result<(Toolset, usize)> {
    let options = Options { tools: tools.to_owned(), out: tools.join("tool_registry.json"), cache: None };
    let compilation =
        compile(options, &Progress::default()).map_err(|error| Failure::new(&error, error.help()))?;
    if !compilation.is_ok() {
        report::show(tools, &compilation.diagnostics);
        let message = format!("the tools do not build: {}", report::count(&compilation.diagnostics));
        return Err(Failure::new(message, "mend them, then try again").into());
    }
    let bytes = compilation.to_bytes(None, &Timestamp::Now(String::new()))?;
    Ok((Toolset::from_text(String::from_utf8(bytes)?)?, compilation.diagnostics.len()))
}

/// What a session gets: the tools that were built, and those that the configuration adds.
pub struct Whole {
    pub toolset: Toolset,
    pub declared: usize,
    pub imported: usize,
    /// What is wrong with others, which are left out.
    pub refused: Vec<Failure>,
}

impl Whole {
    /// `registered` tells which native handlers there are.
    pub fn of(built: Toolset, config: &Config, imports: &Imports, registered: &dyn Fn(&str) -> bool) -> Self {
        let mut refused = Vec::new();
        let mut toolset = built;
        let before = toolset.ids().count();
        for path in &config.declared {
            let (tools, errors) = declared::load(path, registered);
            let (with, taken) = toolset.with_declared(path, tools);
            toolset = with;
            refused.extend(errors.iter().chain(&taken).map(|error| Failure::new(error, error.help())));
        }
        let declared = toolset.ids().count() - before;
        let (toolset, wrong) = imports.declare(toolset);
        refused.extend(wrong);
        let imported = toolset.ids().count() - before - declared;
        Self { toolset, declared, imported, refused }
    }

    /// For a person, after the tools that were built.
    pub fn summary(&self) -> String {
        let all = self.toolset.ids().count();
        let built = all - self.declared - self.imported;
        let mut text = format!("a session gets {}: {built} built", report::plural(all, "tool"));
        for (count, word) in
            [(self.declared, "declared"), (self.imported, "imported"), (self.refused.len(), "refused")]
        {
            if count > 0 {
                text.push_str(&format!(", {count} {word}"));
            }
        }
        let is_native = |tool: &&Tool| matches!(tool.implementation, Implementation::Native(_));
        let natives = self.toolset.declared().iter().take(self.declared).filter(is_native).count();
        if natives > 0 {
            text.push_str(&format!(" ({natives} only in a program that registers the handler)"));
        }
        text
    }
}
