//! The toolset of a command: an artifact, or the tools directory compiled in memory, and the tools that the
//! configuration declares or imports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use toolwright_contract::BUILTIN_HANDLERS;
use toolwright_contract::suggest::nearest;
use toolwright_orchestrator::Runtime;
use toolwright_registry::build::{Compilation, Progress, Timestamp, compile};
use toolwright_registry::declared;
use toolwright_registry::diagnostic::Severity;
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::args::{Format, Source};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::report;
use crate::server_client::ServerClient;

/// Reads the named artifact, or compiles the tools directory without writing anything.
pub fn load(source: &Source, config: &Config) -> Result<Toolset> {
    Ok(load_with_imports(source, config, None)?.0)
}

/// The toolset, ready to be called.
pub fn load_runtime(source: &Source, config: &Config) -> Result<Runtime> {
    load_runtime_with(source, config, None)
}

/// As [`load_runtime`]. Other tools than the one that is needed are left out if they do not build.
pub fn load_runtime_with(source: &Source, config: &Config, needed: Option<&str>) -> Result<Runtime> {
    start_engine(config);
    let (toolset, imports, _) = load_with_imports(source, config, needed)?;
    build_runtime(toolset, source, config, &imports)
}

/// As [`load_runtime`], for a server that follows changes: if the tools do not build, that is reported, and the toolset
/// has only the declared and imported tools.
pub fn load_runtime_to_watch(source: &Source, config: &Config) -> Result<Runtime> {
    start_engine(config);
    let imports = Imports::load(config)?;
    let built = built_tools(source, config, None).unwrap_or_else(|error| {
        output::report(&error);
        output::message("serving no tool of the directory until they build");
        (Toolset::empty(), 0)
    });
    let toolset = assemble(built.0, config, &imports);
    build_runtime(toolset, source, config, &imports)
}

/// As [`load_runtime_with`], for a single call: prints the number of warnings, and returns the imports to wait for.
pub fn load_runtime_for_call(
    source: &Source,
    config: &Config,
    needed: Option<&str>,
) -> Result<(Runtime, Imports)> {
    start_engine(config);
    let (toolset, imports, warnings) = load_with_imports(source, config, needed)?;
    if warnings > 0 && config.format == Format::Human {
        let warnings = report::plural(warnings, "warning");
        output::warning(format_args!("the tools build with {warnings}; see `toolwright check`"));
    }
    Ok((build_runtime(toolset, source, config, &imports)?, imports))
}

/// Refuses an artifact for a call that a server runs with its own tools.
pub fn refuse_artifact(source: &Source, server: &ServerClient) -> Result<(), Failure> {
    if source.artifact.is_none() {
        return Ok(());
    }
    let message =
        format!("the server at {} uses the store, and runs calls with its own tools", server.file.url);
    Err(Failure::usage(message, "leave `--artifact` out, or name another store with `--store URL`"))
}

/// Starts the first worker while the tools are read. A failure is reported by the calls that need one.
fn start_engine(config: &Config) {
    if let Err(failure) = config.engine().warm_up() {
        tracing::warn!("JavaScript tools cannot run: {failure}");
    }
}

/// Also returns the number of warnings.
fn load_with_imports(
    source: &Source,
    config: &Config,
    needed: Option<&str>,
) -> Result<(Toolset, Imports, usize)> {
    let imports = Imports::load(config)?;
    let (built, warnings) = built_tools(source, config, needed)?;
    Ok((assemble(built, config, &imports), imports, warnings))
}

/// The tools of the artifact or of the directory, and the number of warnings.
fn built_tools(source: &Source, config: &Config, needed: Option<&str>) -> Result<(Toolset, usize)> {
    match &source.artifact {
        Some(artifact) => Ok((load_artifact(artifact)?, 0)),
        // Declared and imported tools alone are a toolset too.
        None if config.has_only_other_tools() => Ok((Toolset::empty(), 0)),
        None => compile_in_memory(config, needed),
    }
}

fn load_artifact(path: &Path) -> Result<Toolset, Failure> {
    let toolset = Toolset::load(path).map_err(|error| Failure::new(&error, error.help()))?;
    let missing = toolset.missing_handlers(path.parent().unwrap_or(Path::new("")));
    let Some(first) = missing.first() else { return Ok(toolset) };
    let others = match missing.len() - 1 {
        0 => String::new(),
        count => format!(", and {} are missing", report::plural(count, "other handler")),
    };
    let message =
        format!("the artifact {} has a tool whose handler {first} is not there{others}", path.display());
    Err(Failure::new(
        message,
        "ship the tools directory with the artifact: handlers are found relative to it",
    ))
}

/// All tools of a session. Those that are refused are logged.
fn assemble(built: Toolset, config: &Config, imports: &Imports) -> Toolset {
    // Native handlers are registered by programs that embed Toolwright; the command has none.
    let session = SessionToolset::assemble(built, config, imports, &|_| false);
    session.refused.iter().for_each(|refused| tracing::error!("{refused}; {}", refused.help));
    session.toolset
}

fn build_runtime(toolset: Toolset, source: &Source, config: &Config, imports: &Imports) -> Result<Runtime> {
    // A tool that does not build may be left out of the toolset, but it is not unknown.
    let is_left_out = |name: &str| toolset.get(name).is_none() && tool_directory(config, name).is_dir();
    if let Some((_, unknown)) = unknown_sections(config, &toolset).find(|(name, _)| !is_left_out(name)) {
        return Err(unknown.into());
    }
    let artifact_dir = source.artifact.as_deref().and_then(Path::parent);
    let builder = Runtime::builder(Arc::new(toolset), artifact_dir.unwrap_or(&config.tools))
        .engine(config.engine().clone())
        .limits(config.handlers())
        .capabilities(config.capabilities());
    let allowed = config.allowed_hosts()?.into_iter();
    Ok(allowed.fold(imports.register(builder), |builder, (tool, list)| builder.allow(tool, list)).build())
}

/// The sections of the configuration for tools that do not exist.
pub fn unknown_sections<'a>(
    config: &'a Config,
    toolset: &'a Toolset,
) -> impl Iterator<Item = (&'a str, Failure)> {
    let unknown = config.settings.tool.keys().filter(|name| toolset.get(name).is_none());
    unknown.map(|name| {
        let help = match nearest(&name.replace('-', "_"), toolset.ids()) {
            Some(near) => format!("did you mean `[tool.{near}]`?"),
            None => "use the tool's id; `toolwright list` prints all ids".to_owned(),
        };
        let message = format!("`[tool.{name}]` in the configuration: there is no tool `{name}`");
        (name.as_str(), Failure::new(message, help))
    })
}

/// The runtime for a command's async work.
pub fn async_runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// The tool's id, from its id or its directory's name.
pub fn tool_id(tools: &Toolset, name: &str) -> String {
    if tools.get(name).is_some() { name.to_owned() } else { name.replace('-', "_") }
}

pub fn unknown_tool(tools: &Toolset, name: &str) -> Failure {
    let help = match nearest(name, tools.ids()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`toolwright list` prints all tools".to_owned(),
    };
    Failure::new(format!("there is no tool `{name}`"), help)
}

/// The directory of a tool, from its id or its directory's name.
fn tool_directory(config: &Config, name: &str) -> PathBuf {
    config.tools.join(name.replace('_', "-"))
}

fn compile_in_memory(config: &Config, needed: Option<&str>) -> Result<(Toolset, usize)> {
    let compilation = compile(config.build_options(), &Progress::default())
        .map_err(|error| Failure::new(&error, error.help()))?;
    if !compilation.is_ok() {
        if let Some(toolset) = needed.and_then(|needed| without_broken_tools(config, &compilation, needed)) {
            return Ok((toolset, 0));
        }
        report::print_diagnostics(&config.tools, &compilation.diagnostics);
        let message = format!("the tools do not build: {}", report::count(&compilation.diagnostics));
        return Err(Failure::new(message, "fix them, then try again").into());
    }
    Ok((from_compilation(&compilation)?, compilation.diagnostics.len()))
}

/// The tools that build, if the one that is needed is among them or is none of the tools directory.
fn without_broken_tools(config: &Config, compilation: &Compilation, needed: &str) -> Option<Toolset> {
    let errors = compilation.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let broken: BTreeSet<&str> = errors.map(|found| found.tool.as_str()).collect();
    if broken.contains(needed.replace('_', "-").as_str()) {
        return None;
    }
    let toolset = from_compilation(compilation).ok()?;
    let is_built = toolset.get(&tool_id(&toolset, needed)).is_some();
    if !is_built && tool_directory(config, needed).is_dir() {
        return None;
    }
    let names = broken.into_iter().collect::<Vec<_>>().join(", ");
    output::warning(format_args!("left out, because they do not build: {names}; see `toolwright check`"));
    Some(toolset)
}

/// The toolset of a compilation without errors.
pub fn from_compilation(compilation: &Compilation) -> Result<Toolset> {
    let bytes = compilation.to_bytes(None, &Timestamp::Now(String::new()))?;
    Ok(Toolset::from_text(String::from_utf8(bytes)?)?)
}

/// The tools of a session: those that were built, and those that the configuration declares or imports.
pub struct SessionToolset {
    pub toolset: Toolset,
    pub declared: usize,
    pub imported: usize,
    /// Why other tools are left out.
    pub refused: Vec<Failure>,
}

impl SessionToolset {
    /// `is_registered` says which native handlers there are.
    pub fn assemble(
        built: Toolset,
        config: &Config,
        imports: &Imports,
        is_registered: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut refused = Vec::new();
        let mut toolset = built;
        let before = toolset.ids().count();
        for path in &config.settings.tools.declared {
            let (mut tools, errors) = declared::load(path, is_registered);
            tools.iter_mut().for_each(|tool| config.formats.expand(&mut tool.spec.json_schema));
            let (extended, duplicates) = toolset.with_declared(path, tools);
            toolset = extended;
            refused.extend(errors.iter().chain(&duplicates).map(|error| Failure::new(error, error.help())));
        }
        let declared = toolset.ids().count() - before;
        let (toolset, refused_imports) = imports.add_tools(toolset);
        refused.extend(refused_imports);
        let imported = toolset.ids().count() - before - declared;
        Self { toolset, declared, imported, refused }
    }

    /// One line for people.
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
        let is_native = |tool: &&Tool| match &tool.implementation {
            Implementation::Native(name) => !BUILTIN_HANDLERS.contains(&name.as_str()),
            _ => false,
        };
        let natives = self.toolset.declared().iter().take(self.declared).filter(is_native).count();
        if natives > 0 {
            text.push_str(&format!(" ({natives} only in a program that registers the handler)"));
        }
        text
    }
}
