//! `toolwright check`: all that `build` finds, what a session would get besides, and nothing written.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_providers::PROVIDERS;
use toolwright_registry::artifact;
use toolwright_registry::build::{Compilation, Options, Progress, Timestamp, compile};
use toolwright_registry::toolset::Toolset;

use super::build::{fail, print_json, print_timings, trouble, use_more_threads_than_cores};
use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::toolset::Whole;
use crate::{progress, report};

pub fn run(common: &Common, args: &args::Check) -> Result<ExitCode> {
    let config = Config::load(common, args.dir.as_deref())?;
    let compilation = if config.has_only_other_tools() {
        None
    } else {
        let options =
            Options { out: config.tools.join(artifact::FILE_NAME), tools: config.tools.clone(), cache: None };
        use_more_threads_than_cores();
        let state = Progress::default();
        match progress::watch(progress::of_tools(&state), || compile(options, &state)) {
            Ok(compilation) => Some(compilation),
            Err(error) => {
                return Ok(fail(common.format, 0, trouble("tools-unreadable", &error, error.help())));
            }
        }
    };
    let whole = beside(&config, || built(compilation.as_ref()))?;
    let refused = whole.as_ref().map_or(&[][..], |whole| &whole.refused);
    let is_sound = compilation.as_ref().is_none_or(Compilation::is_ok) && refused.is_empty();
    match common.format {
        Format::Json => tell_programs(is_sound, compilation.as_ref(), refused),
        Format::Human => {
            if let Some(compilation) = &compilation {
                tell(&config, compilation, args.timings);
            }
            if let Some(whole) = &whole {
                tell_whole(whole);
            }
        }
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a session gets, if the configuration adds anything to the tools that were built. Handlers that a program
/// registers are taken to be there.
pub(super) fn beside(config: &Config, built: impl FnOnce() -> Result<Toolset>) -> Result<Option<Whole>> {
    if !config.has_other_tools() {
        return Ok(None);
    }
    Ok(Some(Whole::of(built()?, config, &Imports::load(config)?, &|_| true)))
}

/// For a person: what is refused, and what there is.
pub(super) fn tell_whole(whole: &Whole) {
    warn_of_names(&whole.toolset);
    for Failure { message, help, .. } in &whole.refused {
        output::message(format_args!("\x1b[1;31mrefused\x1b[0m: {message}\n  \x1b[1mhelp\x1b[0m: {help}"));
    }
    output::message(whole.summary());
}

fn built(compilation: Option<&Compilation>) -> Result<Toolset> {
    let Some(compilation) = compilation.filter(|compilation| compilation.is_ok()) else {
        return Ok(Toolset::empty());
    };
    let bytes = compilation.to_bytes(None, &Timestamp::Now(String::new()))?;
    Ok(Toolset::from_text(String::from_utf8(bytes)?)?)
}

fn tell(config: &Config, compilation: &Compilation, with_timings: bool) {
    report::show(&config.tools, &compilation.diagnostics);
    let tools = report::plural(compilation.found, "tool");
    let count = report::count(&compilation.diagnostics);
    match compilation.version() {
        Some(version) if count.is_empty() => {
            output::message(format_args!("\x1b[1;32mok\x1b[0m: {tools}, version {version}"))
        }
        Some(version) => {
            output::message(format_args!("\x1b[1;32mok\x1b[0m: {tools}, version {version} ({count})"))
        }
        None => output::message(format_args!("\x1b[1;31mfailed\x1b[0m: {count} in {tools}")),
    }
    if with_timings {
        print_timings(&compilation.timings);
    }
}

fn tell_programs(is_sound: bool, compilation: Option<&Compilation>, refused: &[Failure]) {
    let refused = refused.iter().map(|refused| trouble("tool-refused", refused, &refused.help));
    let mut all: Vec<_> = compilation.map(|compilation| compilation.diagnostics.clone()).unwrap_or_default();
    all.extend(refused);
    let version = compilation.and_then(Compilation::version).filter(|_| is_sound);
    let found = compilation.map_or(0, |compilation| compilation.found);
    print_json(is_sound, version.as_deref(), found, &all);
}

/// Declared names are freer than those of directories.
fn warn_of_names(tools: &Toolset) {
    for name in tools.declared().iter().map(|tool| tool.spec.tool_id.as_str()) {
        let refusing = PROVIDERS.iter().filter(|provider| !provider.takes_name(name));
        let refusing: Vec<&str> = refusing.map(|provider| provider.name).collect();
        if !refusing.is_empty() {
            output::message(format_args!(
                "\x1b[1;33mwarning\x1b[0m: the declared tool `{name}` has a name that is refused by {}\n  \x1b[1mhelp\x1b[0m: use letters, digits, `_` and `-`, beginning with a letter or `_`, at most 64 of them",
                refusing.join(", ")
            ));
        }
    }
}
