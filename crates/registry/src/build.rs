//! The build: discover, check in parallel, assemble, hash, write. It fails only after all tools are checked.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::artifact::{self, Header, Line};
use crate::cache::{Cache, CachedTool, artifact_fingerprint};
use crate::check::{CheckedTool, Context, check_tool};
use crate::compiled_tool::{CompiledTool, Digests, hex};
use crate::diagnostic::{Diagnostic, DiagnosticDraft, Location, Severity};
use crate::fingerprint::Fingerprint;
use crate::formats::Formats;
use crate::shared::Shared;
use crate::source::{self, ToolDir, discover};

/// Where a build reads and writes, and what it may reuse.
#[derive(Debug, Clone)]
pub struct Options {
    pub tools: PathBuf,
    pub out: PathBuf,
    /// The project's own formats.
    pub formats: Formats,
    /// Identifies the program: a cache of another program is not used. `None`: no cache.
    pub cache: Option<String>,
}

/// How many tools are found and checked, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    pub total: AtomicUsize,
    pub done: AtomicUsize,
}

/// The duration of each phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings(pub Vec<(&'static str, Duration)>);

/// A toolset whose tools are all checked and not written yet.
#[derive(Debug)]
pub struct Compilation {
    tools: Vec<BuiltTool>,
    /// Sorted by tool, file and position.
    pub diagnostics: Vec<Diagnostic>,
    /// Directories found.
    pub found: usize,
    /// Tools of the last build that were not read again.
    pub reused: usize,
    pub timings: Timings,
    options: Options,
    key: String,
    previous: Option<(Cache, File)>,
    /// Computed once all tools are collected.
    version: String,
}

/// The result of writing the artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The existing artifact has the same content.
    Unchanged,
}

/// One tool without errors.
#[derive(Debug)]
struct BuiltTool {
    tool: CachedTool,
    /// The artifact's entry and the path of the handler; `None` if the tool's line is copied.
    compiled: Option<(Vec<u8>, String)>,
}

impl BuiltTool {
    fn line(&self) -> Line<'_> {
        match &self.compiled {
            Some((entry, handler_path)) => Line::Compiled { entry, handler_path },
            None => Line::Copied(self.tool.line.clone()),
        }
    }
}

/// Checks every tool below `options.tools`.
pub fn compile(options: Options, progress: &Progress) -> Result<Compilation, source::Error> {
    let mut timer = PhaseTimer::start();
    let unreadable = |source| source::Error::Unreadable { path: options.tools.clone(), source };
    let dirs = discover(&options.tools)?;
    let root = options.tools.canonicalize().map_err(unreadable)?;
    let shared = Shared::load(&root).map_err(unreadable)?;
    progress.total.store(dirs.len(), Ordering::Relaxed);
    let handler_prefix = handler_prefix(&root, &options.out);
    let key = format!(
        "{}\n{handler_prefix}\n{}\n{:x}",
        options.cache.as_deref().unwrap_or_default(),
        hex(&shared.digest()),
        options.formats.digest()
    );
    let cache = options.cache.as_ref().and_then(|_| Cache::load(&options.out, &key));
    timer.record_phase("discover");

    let context = Context { root: &root, shared: &shared, formats: &options.formats };
    let checked: Vec<Result<BuiltTool, Vec<Diagnostic>>> = dirs
        .par_iter()
        .with_min_len(8)
        .map(|dir| {
            let cache = cache.as_ref().map(|(cache, _)| cache);
            let tool = check_or_reuse(dir, &context, cache, &handler_prefix);
            progress.done.fetch_add(1, Ordering::Relaxed);
            tool
        })
        .collect();
    timer.record_phase("check");

    let mut compilation = Compilation {
        tools: Vec::with_capacity(dirs.len()),
        diagnostics: Vec::new(),
        found: dirs.len(),
        reused: 0,
        timings: Timings::default(),
        options,
        key,
        previous: cache,
        version: String::new(),
    };
    compilation.collect(checked, &dirs);
    timer.record_phase("assemble");
    compilation.timings = timer.timings;
    Ok(compilation)
}

/// The tool of a directory, from the cache if it is unchanged, or its diagnostics if it has errors.
fn check_or_reuse(
    dir: &ToolDir,
    context: &Context<'_>,
    cache: Option<&Cache>,
    handler_prefix: &str,
) -> Result<BuiltTool, Vec<Diagnostic>> {
    let name = dir.name.clone();
    let cached = cache.and_then(|cache| cache.get(&name)).filter(|cached| cached.is_current(dir));
    if let Some(tool) = cached.cloned() {
        return Ok(BuiltTool { tool, compiled: None });
    }
    let CheckedTool { tool, diagnostics: warnings, fingerprint } = check_tool(dir, context);
    let Some(CompiledTool { entry, digests, modules }) = tool else { return Err(warnings) };
    let compiled = Some((entry, format!("{handler_prefix}{name}/handler.js")));
    // The line is known once the artifact is written.
    let tool = CachedTool { name, fingerprint, modules, digests, line: 0..0, warnings };
    Ok(BuiltTool { tool, compiled })
}

/// The path from the artifact's directory to the tools directory, so that both can be moved together.
fn handler_prefix(root: &Path, out: &Path) -> String {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(parent) = parent.canonicalize() else { return String::new() };
    let mut up = String::new();
    let mut ancestor = parent.as_path();
    loop {
        if let Ok(down) = root.strip_prefix(ancestor) {
            let down: String = down.iter().map(|part| format!("{}/", part.to_string_lossy())).collect();
            return up + &down;
        }
        up.push_str("../");
        match ancestor.parent() {
            Some(next) => ancestor = next,
            None => return up,
        }
    }
}

impl Compilation {
    /// Whether no tool has errors.
    pub fn is_ok(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }

    /// The toolset's version; `None` if a tool has errors.
    pub fn version(&self) -> Option<String> {
        self.is_ok().then(|| self.version.clone())
    }

    fn collect(&mut self, checked: Vec<Result<BuiltTool, Vec<Diagnostic>>>, dirs: &[ToolDir]) {
        for result in checked {
            match result {
                Ok(tool) => {
                    self.reused += usize::from(tool.compiled.is_none());
                    self.diagnostics.extend(tool.tool.warnings.iter().cloned());
                    self.tools.push(tool);
                }
                Err(diagnostics) => self.diagnostics.extend(diagnostics),
            }
        }
        if dirs.is_empty() {
            let message = format!("the tools directory `{}` has no tools", self.options.tools.display());
            let mut draft = DiagnosticDraft::error("no-tools", "", Location::File, message);
            draft.help("create one with `toolwright new my-tool`").warning();
            self.diagnostics.push(draft.locate("", None));
        }
        self.diagnostics.extend(duplicate_ids(dirs));
        // Every tool that uses a shared file reports its errors: one report is enough.
        let mut seen = std::collections::HashSet::new();
        self.diagnostics.retain(|one| {
            !one.file.starts_with("../")
                || seen.insert((one.file.clone(), one.span.clone(), one.code.clone()))
        });
        self.diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        self.tools.sort_by(|a, b| a.tool.digests.tool_id.cmp(&b.tool.digests.tool_id));
        self.version = artifact::version(self.digests());
    }

    /// Replaces the artifact, unless it has the same content. The compilation must be without errors.
    pub fn write(
        &mut self,
        git_commit: Option<String>,
        timestamp: &Timestamp,
    ) -> Result<Outcome, artifact::Error> {
        let mut timer = PhaseTimer::start();
        let header = self.header(git_commit, timestamp.text());
        if let Some((previous, _)) = &self.previous
            && is_up_to_date(&previous.header, &header, timestamp)
        {
            if self.reused < self.tools.len() {
                self.update_cache();
            }
            return Ok(Outcome::Unchanged);
        }
        let old = self.previous.as_ref().map(|(_, file)| file);
        let written = artifact::replace(&self.options.out, &header, &self.lines(), old)?;
        timer.record_phase("write");
        if self.options.cache.is_some() {
            self.store_cache(header, artifact_fingerprint(&written.metadata), &written.lines);
            timer.record_phase("cache");
        }
        self.timings.0.append(&mut timer.timings.0);
        Ok(Outcome::Written)
    }

    /// Stores the new fingerprints of files that were touched without a change of the artifact.
    fn update_cache(&mut self) {
        let Some((previous, _)) = self.previous.take() else { return };
        let line = |tool: &BuiltTool| previous.get(&tool.tool.name).map(|cached| cached.line.clone());
        if let Some(lines) = self.tools.iter().map(line).collect::<Option<Vec<_>>>() {
            self.store_cache(previous.header, previous.artifact, &lines);
        }
    }

    /// The artifact in memory. The compilation must be without a cache.
    pub fn to_bytes(&self, git_commit: Option<String>, timestamp: &Timestamp) -> std::io::Result<Vec<u8>> {
        artifact::to_bytes(&self.header(git_commit, timestamp.text()), &self.lines())
    }

    fn header(&self, git_commit: Option<String>, timestamp: &str) -> Header {
        Header {
            format_version: artifact::FORMAT_VERSION,
            content_digest: artifact::content_digest(&self.version, self.digests()),
            version: self.version.clone(),
            git_commit,
            build_timestamp: timestamp.to_owned(),
        }
    }

    fn digests(&self) -> impl Iterator<Item = &Digests> {
        self.tools.iter().map(|built| &built.tool.digests)
    }

    fn lines(&self) -> Vec<Line<'_>> {
        self.tools.iter().map(BuiltTool::line).collect()
    }

    fn store_cache(&mut self, header: Header, artifact: Fingerprint, lines: &[Range<u64>]) {
        let tools = self.tools.drain(..).zip(lines);
        let mut tools: Vec<_> =
            tools.map(|(built, line)| CachedTool { line: line.clone(), ..built.tool }).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Cache { key: std::mem::take(&mut self.key), artifact, header, tools }.store(&self.options.out);
    }
}

/// Whether an artifact with the old header need not be replaced by one with the new header.
fn is_up_to_date(old: &Header, new: &Header, timestamp: &Timestamp) -> bool {
    let same_time = matches!(timestamp, Timestamp::Now(_)) || old.build_timestamp == new.build_timestamp;
    same_time && old.content_digest == new.content_digest && old.git_commit == new.git_commit
}

/// The build time that the artifact states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timestamp {
    /// The current time. An artifact that differs in nothing else is not replaced.
    Now(String),
    /// A given time, for reproducible builds.
    Pinned(String),
}

impl Timestamp {
    fn text(&self) -> &str {
        match self {
            Self::Now(text) | Self::Pinned(text) => text,
        }
    }
}

/// Reports directories with the same tool id.
fn duplicate_ids(dirs: &[ToolDir]) -> Vec<Diagnostic> {
    let mut first = std::collections::HashMap::new();
    let mut diagnostics = Vec::new();
    for dir in dirs {
        let id = dir.name.replace('-', "_").to_lowercase();
        match first.get(&id) {
            None => drop(first.insert(id, dir.name.as_str())),
            Some(other) => {
                let message =
                    format!("the directories `{other}` and `{}` both define the tool `{id}`", dir.name);
                let draft = DiagnosticDraft::error("dir-duplicate", "", Location::File, message);
                diagnostics.push(draft.with_help("rename or remove one of them").locate(&dir.name, None));
            }
        }
    }
    diagnostics
}

/// Measures the phases of a build.
struct PhaseTimer {
    last: Instant,
    timings: Timings,
}

impl PhaseTimer {
    fn start() -> Self {
        Self { last: Instant::now(), timings: Timings::default() }
    }

    fn record_phase(&mut self, name: &'static str) {
        self.timings.0.push((name, self.last.elapsed()));
        self.last = Instant::now();
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
