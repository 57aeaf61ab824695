//! `toolwright build`: compile, report, write.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use toolwright_registry::artifact;
use toolwright_registry::build::{Compilation, Options, Outcome, Progress, Timestamp, Timings, compile};
use toolwright_registry::diagnostic::{Diagnostic, Severity};
use toolwright_registry::toolset::Toolset;

use super::git::Commit;
use super::{check, views};
use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{progress, report};

pub fn run(common: &Common, args: &args::Build) -> Result<ExitCode> {
    let config = Config::load(common, args.dir.as_deref())?;
    let job = Job {
        out: args.out.clone().unwrap_or_else(|| config.tools.join(artifact::FILE_NAME)),
        tools: config.tools.clone(),
        format: common.format,
        show_timings: args.timings,
        is_quiet: args.quiet,
        is_repeated: args.watch,
        cache: if args.no_cache { None } else { Some(program_identity()) },
        timestamp: timestamp()?,
        views: args.emit_views.clone(),
        config,
    };
    if args.watch { super::watch::run(&job) } else { Ok(job.build()) }
}

/// One build, which may be repeated.
#[derive(Debug)]
pub struct Job {
    pub tools: PathBuf,
    pub out: PathBuf,
    format: Format,
    show_timings: bool,
    is_quiet: bool,
    is_repeated: bool,
    cache: Option<String>,
    timestamp: Option<i64>,
    /// Where the providers' views go.
    views: Option<PathBuf>,
    /// What else there is, beside the tools that are built.
    config: Config,
}

impl Job {
    /// Builds once and reports.
    pub fn build(&self) -> ExitCode {
        use_more_threads_than_cores();
        let started = Instant::now();
        let commit = Commit::ask(&self.tools);
        let options = Options { tools: self.tools.clone(), out: self.out.clone(), cache: self.cache.clone() };
        let state = Progress::default();
        let mut compilation = match progress::watch(progress::of_tools(&state), || compile(options, &state)) {
            Ok(compilation) => compilation,
            Err(error) => {
                return fail(self.format, 0, trouble("tools-unreadable", &error, error.help()));
            }
        };
        let version = compilation.version();
        if version.is_none() {
            return self.refuse(&compilation);
        }
        let found = compilation.found;
        let written = compilation.write(commit.answer(), &stamp(self.timestamp));
        match written {
            Ok(outcome) => {
                if let Some(views) = &self.views
                    && let Err(error) = views::write(views, &self.out, &self.config)
                {
                    let help = "name a directory that can be written with `--emit-views DIR`";
                    return fail(self.format, found, trouble("views-unwritable", error.as_ref(), help));
                }
                let code = self.succeed(&compilation, version.as_deref(), outcome, started.elapsed());
                if !self.is_repeated {
                    // The process ends here: giving tens of megabytes back piece by piece would only take time.
                    std::mem::forget(compilation);
                }
                code
            }
            Err(error) => fail(self.format, found, trouble("artifact-unwritable", &error, error.help())),
        }
    }

    fn refuse(&self, compilation: &Compilation) -> ExitCode {
        self.diagnostics(compilation, None);
        if self.format == Format::Human {
            output::message(format_args!(
                "\x1b[1;31mfailed\x1b[0m: {} in {}; nothing was written",
                report::count(&compilation.diagnostics),
                report::plural(compilation.found, "tool"),
            ));
            self.timings(&compilation.timings);
        }
        ExitCode::FAILURE
    }

    fn succeed(
        &self,
        compilation: &Compilation,
        version: Option<&str>,
        outcome: Outcome,
        took: Duration,
    ) -> ExitCode {
        if self.is_quiet && self.format == Format::Human {
            return ExitCode::SUCCESS;
        }
        self.diagnostics(compilation, version);
        if self.format == Format::Human {
            let verb = match outcome {
                Outcome::Written => "built",
                Outcome::Unchanged => "unchanged",
            };
            output::message(format_args!(
                "\x1b[1;32m{verb}\x1b[0m {}: {}, version {}{}{} in {}",
                self.out.display(),
                report::plural(compilation.found, "tool"),
                version.unwrap_or_default(),
                if compilation.reused > 0 {
                    format!(", {} as before", compilation.reused)
                } else {
                    String::new()
                },
                warnings(&compilation.diagnostics),
                duration(took),
            ));
            self.tell_whole();
            self.timings(&compilation.timings);
        }
        ExitCode::SUCCESS
    }

    /// What a session gets besides. It is not part of the artifact, so the build stands whatever it is.
    fn tell_whole(&self) {
        match check::beside(&self.config, || Ok(Toolset::load(&self.out)?)) {
            Ok(Some(whole)) => check::tell_whole(&whole),
            Ok(None) => {}
            Err(error) => {
                output::fail(&error);
            }
        }
    }

    fn diagnostics(&self, compilation: &Compilation, version: Option<&str>) {
        print(self.format, &self.tools, compilation, version);
    }

    fn timings(&self, timings: &Timings) {
        if self.show_timings {
            print_timings(timings);
        }
    }
}

/// Reports what a compilation found, in either format.
pub fn print(format: Format, tools: &Path, compilation: &Compilation, version: Option<&str>) {
    match format {
        Format::Human => report::show(tools, &compilation.diagnostics),
        Format::Json => print_json(version.is_some(), version, compilation.found, &compilation.diagnostics),
    }
}

/// A build reads many small files: while one thread waits for the disk, another can check. `RAYON_NUM_THREADS` wins.
pub fn use_more_threads_than_cores() {
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Threads start with the first build; whoever set up a pool before keeps it.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores * 2).build_global();
    }
}

/// Where the time went, one phase a line.
pub fn print_timings(timings: &Timings) {
    for (phase, took) in &timings.0 {
        output::message(format_args!("  {phase:<10} {:>10}", duration(*took)));
    }
}

/// Reports a failure that is not a tool's, in either format.
pub fn fail(format: Format, found: usize, diagnostic: Diagnostic) -> ExitCode {
    match format {
        Format::Human => {
            return output::fail(
                &Failure::new(diagnostic.message, diagnostic.help.unwrap_or_default()).into(),
            );
        }
        Format::Json => print_json(false, None, found, &[diagnostic]),
    }
    ExitCode::FAILURE
}

/// A failure that is not a tool's, as a diagnostic.
pub fn trouble(code: &'static str, error: &dyn std::error::Error, help: &str) -> Diagnostic {
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

pub fn print_json(ok: bool, version: Option<&str>, tools: usize, diagnostics: &[Diagnostic]) {
    let diagnostics = diagnostics.iter().map(Into::into).collect();
    let report = report::Report { ok, version, tools, diagnostics };
    output::data_line(serde_json::to_string(&report).unwrap_or_default());
}

fn warnings(diagnostics: &[Diagnostic]) -> String {
    if diagnostics.is_empty() { String::new() } else { format!(" ({})", report::count(diagnostics)) }
}

/// A length of time as people say it.
pub fn duration(took: Duration) -> String {
    if took < Duration::from_secs(1) {
        format!("{:.1} ms", took.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", took.as_secs_f64())
    }
}

/// The seconds since 1970 that a reproducible build is to carry, from `SOURCE_DATE_EPOCH`.
fn timestamp() -> Result<Option<i64>, Failure> {
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

fn stamp(pinned: Option<i64>) -> Timestamp {
    let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    match pinned.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        Some(time) => Timestamp::Pinned(text(time)),
        None => Timestamp::Now(text(Utc::now())),
    }
}

/// Another program, or the same one built anew, does not trust this one's cache.
fn program_identity() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata).ok();
    let modified = file.as_ref().and_then(|file| file.modified().ok());
    format!("{} {:?} {:?}", env!("CARGO_PKG_VERSION"), file.map(|file| file.len()), modified)
}
