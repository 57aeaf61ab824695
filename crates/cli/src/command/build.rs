//! `toolwright build`: compiles the tools, reports problems, writes the artifact.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use toolwright_registry::build::{Compilation, Options, Outcome, Progress, Timestamp, Timings, compile};
use toolwright_registry::diagnostic::{Diagnostic, Severity};
use toolwright_registry::toolset::Toolset;
use toolwright_registry::{artifact, source};

use super::git::CommitLookup;
use super::{check, views, watch};
use crate::args::{Common, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::progress::{self, Counters};
use crate::report;

/// Compile the tools directory into one validated, versioned artifact
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright build
  toolwright build my-tools --out dist/tool_registry.json
  SOURCE_DATE_EPOCH=0 toolwright build      the same bytes every time")]
pub struct Build {
    /// The tools directory
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The artifact's file [default: tool_registry.json in the tools directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Build again whenever a file changes
    #[arg(long)]
    watch: bool,
    /// Print the duration of each phase
    #[arg(long)]
    timings: bool,
    /// Check all tools, also those that have not changed
    #[arg(long)]
    no_cache: bool,
    /// Also write each provider's view of the tools into this directory
    #[arg(long, value_name = "DIR")]
    emit_views: Option<PathBuf>,
    /// Print nothing unless the build fails
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(common: &Common, args: &Build) -> Result<ExitCode> {
    let config = Config::load(common, args.dir.as_deref())?;
    let job = BuildJob {
        out: args.out.clone().unwrap_or_else(|| config.tools.join(artifact::FILE_NAME)),
        cache: if args.no_cache { None } else { Some(program_identity()) },
        source_date_epoch: source_date_epoch()?,
        config,
        args,
    };
    if !args.watch {
        return Ok(job.build());
    }
    let started = || {
        job.build();
        let paths: Vec<String> =
            job.config.watched_paths().iter().map(|path| path.display().to_string()).collect();
        output::message(format_args!("watching {} (stop with Ctrl-C)", paths.join(", ")));
    };
    let build = || {
        job.build();
    };
    watch::watch(&job.config.watched_paths(), Some(&job.out), started, build)?;
    Ok(ExitCode::SUCCESS)
}

/// One build, which `--watch` repeats.
#[derive(Debug)]
struct BuildJob<'a> {
    out: PathBuf,
    cache: Option<String>,
    source_date_epoch: Option<i64>,
    config: Config,
    args: &'a Build,
}

impl BuildJob<'_> {
    fn build(&self) -> ExitCode {
        let started = Instant::now();
        if !self.config.tools.exists() && self.config.has_only_other_tools() {
            return self.report_no_directory();
        }
        let (format, tools) = (self.config.format, &self.config.tools);
        let commit = CommitLookup::start(tools);
        let options =
            Options { out: self.out.clone(), cache: self.cache.clone(), ..self.config.build_options() };
        let mut compilation = match compile_with_bar(options) {
            Ok(compilation) => compilation,
            Err(error) => return fail(format, 0, diagnostic("tools-unreadable", &error, error.help())),
        };
        if self.config.has_other_tools() {
            let is_about_tools = |found: &Diagnostic| found.code == "no-tools";
            compilation.diagnostics.retain(|found| !is_about_tools(found));
        }
        let Some(version) = compilation.version() else { return self.report_failure(&compilation) };
        let found = compilation.found;
        let outcome = match compilation.write(commit.finish(), &timestamp(self.source_date_epoch)) {
            Ok(outcome) => outcome,
            Err(error) => {
                return fail(format, found, diagnostic("artifact-unwritable", &error, error.help()));
            }
        };
        if let Some(dir) = &self.args.emit_views
            && let Err(error) = views::write(dir, &self.out, &self.config)
        {
            let help = "name a writable directory with `--emit-views DIR`";
            return fail(format, found, diagnostic("views-unwritable", error.as_ref(), help));
        }
        self.report_success(&compilation, &version, outcome, started.elapsed());
        if !self.args.watch {
            // The process ends here: freeing tens of megabytes would only take time.
            std::mem::forget(compilation);
        }
        ExitCode::SUCCESS
    }

    /// Declared and imported tools are not part of an artifact: there is nothing to build, and they are checked.
    fn report_no_directory(&self) -> ExitCode {
        if self.config.format == Format::Json {
            report::print_json(true, None, 0, &[]);
        } else {
            output::message(
                "nothing to build: the tools are declared or imported, and no artifact is needed",
            );
            self.report_session(|| Ok(Toolset::empty()));
        }
        ExitCode::SUCCESS
    }

    /// Other tools are not part of the artifact, so a problem with them does not fail the build.
    fn report_session(&self, built: impl FnOnce() -> Result<Toolset>) {
        match check::session_toolset(&self.config, built) {
            Ok(Some(session)) => check::print_session_toolset(&session),
            Ok(None) => {}
            Err(error) => {
                output::report(&error);
            }
        }
    }

    fn report_failure(&self, compilation: &Compilation) -> ExitCode {
        self.print_diagnostics(compilation, None);
        if self.config.format == Format::Human {
            output::message(format_args!(
                "\x1b[1;31mfailed\x1b[0m: {}; nothing was written",
                report::summary(&compilation.diagnostics, compilation.found),
            ));
            self.print_timings(compilation);
        }
        ExitCode::FAILURE
    }

    fn report_success(&self, compilation: &Compilation, version: &str, outcome: Outcome, duration: Duration) {
        let is_human = self.config.format == Format::Human;
        if self.args.quiet && is_human {
            return;
        }
        self.print_diagnostics(compilation, Some(version));
        if !is_human {
            return;
        }
        let word = match outcome {
            Outcome::Written => "built",
            Outcome::Unchanged => "unchanged",
        };
        let reused = match compilation.reused {
            0 => String::new(),
            reused => format!(", {reused} from the cache"),
        };
        let count = report::count(&compilation.diagnostics);
        let warnings = if count.is_empty() { String::new() } else { format!(" ({count})") };
        output::success(
            word,
            format_args!(
                "{}: {}, version {version}{reused}{warnings} in {}",
                self.out.display(),
                report::plural(compilation.found, "tool"),
                format_duration(duration),
            ),
        );
        self.report_session(|| Ok(Toolset::load(&self.out)?));
        self.print_timings(compilation);
    }

    fn print_diagnostics(&self, compilation: &Compilation, version: Option<&str>) {
        match self.config.format {
            Format::Human => report::print_diagnostics(&self.config.tools, &compilation.diagnostics),
            Format::Json => {
                let Compilation { found, diagnostics, .. } = compilation;
                report::print_json(version.is_some(), version, *found, diagnostics);
            }
        }
    }

    fn print_timings(&self, compilation: &Compilation) {
        if self.args.timings {
            print_timings(&compilation.timings);
        }
    }
}

/// Compiles with a progress bar. A build reads many small files: while one thread waits for the disk, another can
/// check, so there are more threads than cores. `RAYON_NUM_THREADS` wins.
pub fn compile_with_bar(options: Options) -> Result<Compilation, source::Error> {
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // An error means that the pool exists already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores * 2).build_global();
    }
    let state = Progress::default();
    let (done, total) = (&state.done, &state.total);
    let counters = Counters { done, total, verb: "checking", amount: "{pos}/{len} tools" };
    progress::run_with_bar(counters, || compile(options, &state))
}

/// Prints the duration of each phase.
pub fn print_timings(timings: &Timings) {
    for (phase, duration) in &timings.0 {
        output::message(format_args!("  {phase:<10} {:>10}", format_duration(*duration)));
    }
}

/// Reports a failure that is not about one tool, in either format.
pub fn fail(format: Format, found: usize, diagnostic: Diagnostic) -> ExitCode {
    if format == Format::Human {
        return output::report(&Failure::new(diagnostic.message, diagnostic.help.unwrap_or_default()).into());
    }
    report::print_json(false, None, found, &[diagnostic]);
    ExitCode::FAILURE
}

/// A failure that is not about one tool, as a diagnostic.
pub fn diagnostic(code: &'static str, error: &dyn std::error::Error, help: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code.into(),
        tool: String::new(),
        file: String::new(),
        line: 1,
        column: 1,
        span: None,
        message: error.to_string(),
        help: Some(help.to_owned()),
    }
}

/// `12.3 ms` or `1.23 s`.
pub fn format_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{:.1} ms", duration.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", duration.as_secs_f64())
    }
}

/// The timestamp of a reproducible build, from the environment.
fn source_date_epoch() -> Result<Option<i64>, Failure> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.trim().parse().ok());
    match seconds.filter(|seconds| DateTime::<Utc>::from_timestamp(*seconds, 0).is_some()) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Failure::usage(
            format!("SOURCE_DATE_EPOCH is not a number of seconds: {}", text.display()),
            "set it to seconds since 1970-01-01, such as `git log -1 --format=%ct`, or unset it",
        )),
    }
}

fn timestamp(source_date_epoch: Option<i64>) -> Timestamp {
    let format = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    match source_date_epoch.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        Some(time) => Timestamp::Pinned(format(time)),
        None => Timestamp::Now(format(Utc::now())),
    }
}

/// Identifies this build of the program: a cache of another one is not trusted.
fn program_identity() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata).ok();
    let modified = file.as_ref().and_then(|file| file.modified().ok());
    format!("{} {:?} {:?}", env!("CARGO_PKG_VERSION"), file.map(|file| file.len()), modified)
}
