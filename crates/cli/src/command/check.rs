//! `toolwright check`: all that `build` finds, and nothing written.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_providers::PROVIDERS;
use toolwright_registry::artifact;
use toolwright_registry::build::{Options, Progress, compile};
use toolwright_registry::declared;
use toolwright_registry::toolset::Toolset;

use super::build::{fail, print, print_timings, trouble, use_more_threads_than_cores};
use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::{output, progress, report};

pub fn run(common: &Common, args: &args::Check) -> Result<ExitCode> {
    let config = Config::load(common, args.dir.as_deref())?;
    let options =
        Options { out: config.tools.join(artifact::FILE_NAME), tools: config.tools.clone(), cache: None };
    use_more_threads_than_cores();
    let state = Progress::default();
    let compilation = match progress::watch(progress::of_tools(&state), || compile(options, &state)) {
        Ok(compilation) => compilation,
        Err(error) => {
            return Ok(fail(common.format, 0, trouble("tools-unreadable", &error, error.help())));
        }
    };
    let version = compilation.version();
    print(common.format, &config.tools, &compilation, version.as_deref());
    if common.format == Format::Human {
        let tools = report::plural(compilation.found, "tool");
        let count = report::count(&compilation.diagnostics);
        match &version {
            Some(version) if count.is_empty() => {
                output::message(format_args!("\x1b[1;32mok\x1b[0m: {tools}, version {version}"))
            }
            Some(version) => {
                output::message(format_args!("\x1b[1;32mok\x1b[0m: {tools}, version {version} ({count})"))
            }
            None => output::message(format_args!("\x1b[1;31mfailed\x1b[0m: {count} in {tools}")),
        }
        if args.timings {
            print_timings(&compilation.timings);
        }
    }
    let (declared_tools, declared) = declared(&config);
    warn_of_names(&declared_tools);
    for error in &declared {
        output::message(format_args!(
            "\x1b[1;31merror\x1b[0m: {error}\n  \x1b[1mhelp\x1b[0m: {}",
            error.help()
        ));
    }
    let is_sound = version.is_some() && declared.is_empty();
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The declared tools, and what is wrong with the others. Handlers that a program registers are taken to be there.
fn declared(config: &Config) -> (Toolset, Vec<declared::Error>) {
    let mut toolset = Toolset::empty();
    let mut errors = Vec::new();
    for path in &config.declared {
        let (tools, wrong) = declared::load(path, &|_| true);
        let (with, taken) = toolset.with_declared(path, tools);
        toolset = with;
        errors.extend(wrong.into_iter().chain(taken));
    }
    (toolset, errors)
}

/// Declared names are freer than those of directories.
fn warn_of_names(tools: &Toolset) {
    for name in tools.ids() {
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
