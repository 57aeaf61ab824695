//! `toolwright test`: runs the tools' own tests in parallel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_orchestrator::testing::{self, Case, Report};
use toolwright_orchestrator::{Orchestrator, Runtime};

use super::build::format_duration;
use crate::args::{Common, Format, Source};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{report, toolset};

/// Run the tools' own tests
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright test
  toolwright test --only kb_search
  toolwright test --format json | jq '.tests[] | select(.ok | not)'")]
pub struct Test {
    /// The tools directory
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only the tests of this tool
    #[arg(long, value_name = "TOOL")]
    only: Option<String>,
}

/// A test, and its report or why it could not be read.
struct TestResult {
    tool: String,
    path: PathBuf,
    report: Result<Report, testing::Error>,
}

impl TestResult {
    fn passed(&self) -> bool {
        matches!(&self.report, Ok(report) if report.passed())
    }

    fn differences(&self) -> Vec<String> {
        match &self.report {
            Ok(report) => report.differences.clone(),
            Err(error) => vec![error.to_string()],
        }
    }
}

pub fn run(common: &Common, args: &Test) -> Result<ExitCode> {
    let started = Instant::now();
    let config = Config::load(common, args.dir.as_deref())?;
    let runtime = toolset::load_runtime_with(&Source::default(), &config, args.only.as_deref())?;
    let is_without_directories = config.has_only_other_tools() || runtime.toolset().ids().next().is_none();
    let files = find_tests(&config.tools, &runtime, args.only.as_deref())?;
    if files.is_empty() && is_without_directories {
        match config.format {
            Format::Json => output::print_line(json!({ "ok": true, "tests": [] })),
            Format::Human => output::message("no tests: there is no tool with a directory"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if files.is_empty() {
        let help = "add a JSON file to a tool's `tests` directory; `toolwright new` creates one";
        return Err(Failure::new(format!("no tests found in {}", config.tools.display()), help).into());
    }
    let orchestrator = Orchestrator::builder(runtime).build()?;
    let results = toolset::async_runtime()?.block_on(run_all(&orchestrator, files));
    let failed = results.iter().filter(|result| !result.passed()).count();
    match config.format {
        Format::Json => {
            let rows: Vec<Value> = results.iter().map(to_json).collect();
            output::print_line(json!({ "ok": failed == 0, "tests": rows }));
        }
        Format::Human => {
            let failed_tests = results.iter().filter(|result| !result.passed());
            failed_tests.for_each(|failed| print_failed(failed, &config.tools));
            let tools: BTreeSet<&str> = results.iter().map(|result| result.tool.as_str()).collect();
            let (tests, tools) = (report::plural(results.len(), "test"), report::plural(tools.len(), "tool"));
            output::message(format_args!("{tests} of {tools}"));
            let word = if failed == 0 { "\x1b[1;32mok\x1b[0m" } else { "\x1b[1;31mfailed\x1b[0m" };
            let (passed, duration) = (results.len() - failed, format_duration(started.elapsed()));
            output::message(format_args!("{word}: {passed} passed, {failed} failed in {duration}"));
        }
    }
    Ok(output::status(failed == 0))
}

/// Runs all tests at once: the engine has its own threads.
async fn run_all(orchestrator: &Orchestrator, files: Vec<(String, PathBuf)>) -> Vec<TestResult> {
    let run = |(tool, path): (String, PathBuf)| {
        let orchestrator = orchestrator.clone();
        tokio::spawn(async move {
            let report = match Case::load(&path) {
                Ok(case) => Ok(testing::run(&orchestrator, &tool, &case).await),
                Err(error) => Err(error),
            };
            TestResult { tool, path, report }
        })
    };
    let tasks: Vec<_> = files.into_iter().map(run).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        match task.await {
            Ok(result) => results.push(result),
            // A test that panicked must not look as if it did not exist.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    results
}

/// The test files, each with the id of its tool.
fn find_tests(tools: &Path, runtime: &Runtime, only: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let only = only.map(|only| toolset::tool_id(runtime.toolset(), only));
    if let Some(only) = &only
        && runtime.toolset().get(only).is_none()
    {
        return Err(toolset::unknown_tool(runtime.toolset(), only).into());
    }
    let mut files = Vec::new();
    for tool in runtime.toolset().ids().filter(|tool| only.as_deref().is_none_or(|only| only == *tool)) {
        let dir = tools.join(tool.replace('_', "-")).join("tests");
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        files.extend(paths.into_iter().map(|path| (tool.to_owned(), path)));
    }
    Ok(files)
}

fn print_failed(result: &TestResult, tools: &Path) {
    let TestResult { tool, path, .. } = result;
    let name = result.report.as_ref().map_or("", |report| report.name.as_str());
    let path = path.strip_prefix(tools).unwrap_or(path).display();
    output::message(format_args!("\x1b[1;31mFAIL\x1b[0m {tool} {name} ({path})"));
    result.differences().iter().for_each(|difference| output::message(format_args!("  {difference}")));
    if let Ok(report) = &result.report {
        output::message(format_args!("  envelope: {}", report.envelope));
        for line in report.log.iter().flat_map(|entry| entry.lines()) {
            output::message(format_args!("  {}", escape(line)));
        }
    }
}

fn to_json(result: &TestResult) -> Value {
    let TestResult { tool, path, .. } = result;
    let mut row =
        json!({ "tool": tool, "file": path, "ok": result.passed(), "differences": result.differences() });
    if let Ok(report) = &result.report {
        row["name"] = json!(report.name);
        row["envelope"] = json!(report.envelope);
        row["log"] = json!(report.log);
    }
    row
}
