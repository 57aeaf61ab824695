//! `toolwright check`: reports all problems that `build` finds, those of declared and imported tools, and sections of
//! the configuration for tools that do not exist.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use toolwright_contract::BUILTIN_HANDLERS;
use toolwright_contract::suggest::nearest;
use toolwright_providers::PROVIDERS;
use toolwright_registry::build::Compilation;
use toolwright_registry::toolset::Toolset;

use super::build::{compile_with_bar, diagnostic, fail, print_timings};
use crate::args::{Common, Format};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::report;
use crate::toolset::{self, SessionToolset};

/// Check the tools as `build` does, and write nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright check
  toolwright check --format json | jq '.diagnostics[].code'")]
pub struct Check {
    /// The tools directory
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the duration of each phase
    #[arg(long)]
    timings: bool,
}

pub fn run(common: &Common, args: &Check) -> Result<ExitCode> {
    let config = Config::load(common, args.dir.as_deref())?;
    let compilation = if config.has_only_other_tools() {
        None
    } else {
        match compile_with_bar(config.build_options()) {
            Ok(compilation) => Some(compilation),
            Err(error) => {
                return Ok(fail(config.format, 0, diagnostic("tools-unreadable", &error, error.help())));
            }
        }
    };
    let session = session_toolset(&config, || built_toolset(compilation.as_ref()))?;
    let refused = session.as_ref().map_or(&[][..], |session| &session.refused);
    let unknown = unknown_sections(&config, session.as_ref(), compilation.as_ref())?;
    let is_ok =
        compilation.as_ref().is_none_or(Compilation::is_ok) && refused.is_empty() && unknown.is_empty();
    match config.format {
        Format::Json => print_report(is_ok, compilation.as_ref(), refused, &unknown),
        Format::Human => {
            if let Some(compilation) = &compilation {
                print_result(&config, compilation, refused.len() + unknown.len(), args.timings);
            }
            session.iter().for_each(print_session_toolset);
            if !refused.is_empty() {
                let tools = report::plural(refused.len(), "error");
                output::message(format_args!(
                    "\x1b[1;31mfailed\x1b[0m: {tools} in declared or imported tools"
                ));
            }
            for Failure { message, help, .. } in &unknown {
                output::message(format_args!("\x1b[1;31mfailed\x1b[0m: {message}"));
                output::help(help);
            }
        }
    }
    Ok(output::status(is_ok))
}

/// The tools of a session, if the configuration declares or imports any. Handlers count as registered by some program,
/// unless their name looks like a misspelt builtin one.
pub(super) fn session_toolset(
    config: &Config,
    built: impl FnOnce() -> Result<Toolset>,
) -> Result<Option<SessionToolset>> {
    if !config.has_other_tools() {
        return Ok(None);
    }
    Ok(Some(SessionToolset::assemble(built()?, config, &Imports::load(config)?, &is_registered)))
}

fn is_registered(handler: &str) -> bool {
    nearest(handler, BUILTIN_HANDLERS.iter().copied()).is_none()
}

/// Prints the refused tools and a summary, for people.
pub(super) fn print_session_toolset(session: &SessionToolset) {
    warn_about_names(&session.toolset);
    for Failure { message, help, .. } in &session.refused {
        output::message(format_args!("\x1b[1;31mrefused\x1b[0m: {message}"));
        output::help(help);
    }
    output::message(session.summary());
}

/// The sections of the configuration for tools that do not exist, if all tools are known.
pub(super) fn unknown_sections(
    config: &Config,
    session: Option<&SessionToolset>,
    compilation: Option<&Compilation>,
) -> Result<Vec<Failure>> {
    let is_known = compilation.is_none_or(Compilation::is_ok)
        && session.is_none_or(|session| session.refused.is_empty());
    if config.settings.tool.is_empty() || !is_known {
        return Ok(Vec::new());
    }
    match session {
        Some(session) => {
            Ok(toolset::unknown_sections(config, &session.toolset).map(|(_, unknown)| unknown).collect())
        }
        None => Ok(toolset::unknown_sections(config, &built_toolset(compilation)?)
            .map(|(_, unknown)| unknown)
            .collect()),
    }
}

fn built_toolset(compilation: Option<&Compilation>) -> Result<Toolset> {
    let Some(compilation) = compilation.filter(|compilation| compilation.is_ok()) else {
        return Ok(Toolset::empty());
    };
    toolset::from_compilation(compilation)
}

fn print_result(config: &Config, compilation: &Compilation, refused: usize, with_timings: bool) {
    report::print_diagnostics(&config.tools, &compilation.diagnostics);
    let tools = report::plural(compilation.found, "tool");
    let count = report::count(&compilation.diagnostics);
    match compilation.version() {
        None => {
            let summary = report::summary(&compilation.diagnostics, compilation.found);
            output::message(format_args!("\x1b[1;31mfailed\x1b[0m: {summary}"));
        }
        // The tools that are not built are reported next.
        Some(_) if refused > 0 => {
            output::message(format_args!("{tools} in {} are sound", config.tools.display()))
        }
        Some(version) if count.is_empty() => output::success("ok:", format!("{tools}, version {version}")),
        Some(version) => {
            let summary = report::summary(&compilation.diagnostics, compilation.found);
            output::success("ok:", format!("{tools}, version {version} ({summary})"));
        }
    }
    if with_timings {
        print_timings(&compilation.timings);
    }
}

fn print_report(is_ok: bool, compilation: Option<&Compilation>, refused: &[Failure], unknown: &[Failure]) {
    let mut all: Vec<_> = compilation.map(|compilation| compilation.diagnostics.clone()).unwrap_or_default();
    all.extend(refused.iter().map(|refused| diagnostic("tool-refused", refused, &refused.help)));
    all.extend(unknown.iter().map(|unknown| diagnostic("config-unknown-tool", unknown, &unknown.help)));
    let version = compilation.and_then(Compilation::version).filter(|_| is_ok);
    let found = compilation.map_or(0, |compilation| compilation.found);
    report::print_json(is_ok, version.as_deref(), found, &all);
}

/// Declared names may have forms that directories cannot have, and that some providers refuse.
fn warn_about_names(tools: &Toolset) {
    for name in tools.declared().iter().map(|tool| tool.spec.tool_id.as_str()) {
        let refusing = PROVIDERS.iter().filter(|provider| !provider.accepts_name(name));
        let refusing: Vec<&str> = refusing.map(|provider| provider.name).collect();
        if !refusing.is_empty() {
            let refusing = refusing.join(", ");
            output::warning(format_args!("the name of the declared tool `{name}` is refused by {refusing}"));
            output::help(
                "use letters, digits, `_` and `-`, beginning with a letter or `_`, at most 64 characters",
            );
        }
    }
}
