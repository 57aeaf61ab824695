//! `toolwright test`: the tools' own tests, all at once, with a summary.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use toolwright_orchestrator::testing::{self, Case, Report};
use toolwright_orchestrator::{Orchestrator, Runtime};

use super::build::duration;
use crate::args::{self, Common, Format, Source};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{report, toolset};

/// A test that was found: whose, and where.
struct Found {
    tool: String,
    path: PathBuf,
}

pub fn run(common: &Common, args: &args::Test) -> Result<ExitCode> {
    let started = Instant::now();
    let config = Config::load(common, args.dir.as_deref())?;
    let runtime = toolset::runtime(&Source { artifact: None }, &config)?;
    let found = find(&config.tools, &runtime, args.only.as_deref())?;
    if found.is_empty() {
        let help = "a test is a file in a tool's `tests` directory; `toolwright new` writes one";
        return Err(Failure::new(format!("no tests found in {}", config.tools.display()), help).into());
    }
    let tokio = toolset::tokio()?;
    let orchestrator = Orchestrator::builder(runtime).build()?;
    let results = tokio.block_on(run_all(&orchestrator, found));
    let failed =
        results.iter().filter(|(_, result)| !matches!(result, Ok(report) if report.passed())).count();
    match common.format {
        Format::Json => print_json(&results)?,
        Format::Human => print_human(&results, &config.tools),
    }
    if common.format == Format::Human {
        let passed = results.len() - failed;
        let word = if failed == 0 { "\x1b[1;32mok\x1b[0m" } else { "\x1b[1;31mfailed\x1b[0m" };
        let took = duration(started.elapsed());
        output::message(format_args!("{word}: {passed} passed, {failed} failed in {took}"));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Outcome = (Found, Result<Report, testing::Error>);

/// All tests at once: the engine has its own threads, and waits for nobody.
async fn run_all(orchestrator: &Orchestrator, found: Vec<Found>) -> Vec<Outcome> {
    let tasks: Vec<_> = found
        .into_iter()
        .map(|found| {
            let orchestrator = orchestrator.clone();
            tokio::spawn(async move {
                let result = match Case::load(&found.path) {
                    Ok(case) => Ok(testing::run(&orchestrator, &found.tool, &case).await),
                    Err(error) => Err(error),
                };
                (found, result)
            })
        })
        .collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        match task.await {
            Ok(result) => results.push(result),
            // It must not look as if the test had not been there.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    results
}

fn find(tools: &Path, runtime: &Runtime, only: Option<&str>) -> Result<Vec<Found>> {
    let only = only.map(|only| toolset::id_of(runtime.toolset(), only));
    if let Some(only) = &only
        && runtime.toolset().get(only).is_none()
    {
        return Err(toolset::unknown(runtime.toolset(), only).into());
    }
    let mut found = Vec::new();
    for tool in runtime.toolset().ids().filter(|tool| only.as_deref().is_none_or(|only| only == *tool)) {
        let dir = tools.join(tool.replace('_', "-")).join("tests");
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        found.extend(paths.into_iter().map(|path| Found { tool: tool.to_owned(), path }));
    }
    Ok(found)
}

fn print_human(results: &[Outcome], tools: &Path) {
    for (found, result) in results {
        let (name, differences) = match result {
            Ok(report) if report.passed() => continue,
            Ok(report) => (report.name.as_str(), report.differences.clone()),
            Err(error) => ("", vec![error.to_string()]),
        };
        let path = found.path.strip_prefix(tools).unwrap_or(&found.path).display();
        output::message(format_args!("\x1b[1;31mFAIL\x1b[0m {} {name} ({path})", found.tool));
        for difference in &differences {
            output::message(format_args!("  {difference}"));
        }
        if let Ok(report) = result {
            output::message(format_args!("  envelope: {}", report.envelope));
        }
    }
    let tools_seen: std::collections::BTreeSet<&str> =
        results.iter().map(|(found, _)| found.tool.as_str()).collect();
    let (tests, tools) = (report::plural(results.len(), "test"), report::plural(tools_seen.len(), "tool"));
    output::message(format_args!("{tests} of {tools}"));
}

fn print_json(results: &[Outcome]) -> Result<()> {
    let rows: Vec<_> = results
        .iter()
        .map(|(found, result)| match result {
            Ok(report) => json!({"tool": found.tool, "file": found.path, "name": report.name, "ok": report.passed(),
                "differences": report.differences, "envelope": report.envelope}),
            Err(error) => json!({"tool": found.tool, "file": found.path, "ok": false, "differences": [error.to_string()]}),
        })
        .collect();
    let ok = results.iter().all(|(_, result)| matches!(result, Ok(report) if report.passed()));
    output::data_line(serde_json::to_string(&json!({"ok": ok, "tests": rows}))?);
    Ok(())
}
