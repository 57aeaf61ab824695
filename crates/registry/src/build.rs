//! The build: discover, check in parallel, assemble, hash, write. All tools are checked before it fails.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::artifact::{self, Header, Line};
use crate::cache::{Cache, CachedTool, artifact_fingerprint};
use crate::check::{Checked, Context, check_tool};
use crate::compiled::{CompiledTool, Digests, hex};
use crate::diagnostic::{Diagnostic, Finding, Place, Severity};
use crate::fingerprint::{Fingerprint, Root};
use crate::shared::Shared;
use crate::source::{self, ToolDir, discover};

/// Where a build reads and writes, and what it may reuse.
#[derive(Debug, Clone)]
pub struct Options {
    pub tools: PathBuf,
    pub out: PathBuf,
    /// Names the program, so that another one does not trust this one's cache. `None`: no cache.
    pub cache: Option<String>,
}

/// How far a build has come, for whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    pub total: AtomicUsize,
    pub done: AtomicUsize,
}

/// Where the time went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings(pub Vec<(&'static str, Duration)>);

/// All tools checked; nothing is written yet.
#[derive(Debug)]
pub struct Compilation {
    tools: Vec<Slot>,
    /// Sorted by tool, file and position.
    pub diagnostics: Vec<Diagnostic>,
    /// Directories found.
    pub found: usize,
    /// Tools taken over from the last build without being read.
    pub reused: usize,
    pub timings: Timings,
    options: Options,
    key: String,
    previous: Option<(Cache, File)>,
    /// Worked out once all tools are in.
    version: String,
}

/// What writing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The artifact that is there says the same already.
    Unchanged,
}

#[derive(Debug)]
struct Slot {
    name: String,
    fingerprint: Fingerprint,
    warnings: Vec<Diagnostic>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Fresh { tool: CompiledTool, handler_path: String },
    Kept(CachedTool),
}

impl Slot {
    fn digests(&self) -> &Digests {
        match &self.content {
            Content::Fresh { tool, .. } => &tool.digests,
            Content::Kept(cached) => &cached.digests,
        }
    }

    fn line(&self) -> Line<'_> {
        match &self.content {
            Content::Fresh { tool, handler_path } => Line::Fresh { entry: &tool.entry, handler_path },
            Content::Kept(cached) => Line::Kept { start: cached.start, end: cached.end },
        }
    }
}

/// Checks every tool below `options.tools`.
pub fn compile(options: Options, progress: &Progress) -> Result<Compilation, source::Error> {
    let mut clock = Clock::start();
    let unreadable = |source| source::Error::Unreadable { path: options.tools.clone(), source };
    let dirs = discover(&options.tools)?;
    let root = options.tools.canonicalize().map_err(unreadable)?;
    let shared = Shared::load(&root).map_err(unreadable)?;
    progress.total.store(dirs.len(), Ordering::Relaxed);
    let handler_prefix = handler_prefix(&root, &options.out);
    let key = format!(
        "{}\n{handler_prefix}\n{}",
        options.cache.as_deref().unwrap_or_default(),
        hex(&shared.digest())
    );
    let cache = options.cache.as_ref().and_then(|_| Cache::load(&options.out, &key));
    clock.lap("discover");

    let tools = Root::open(&root).map_err(unreadable)?;
    let context = Context { root: &root, tools: &tools, shared: &shared };
    let checked: Vec<Result<Slot, Vec<Diagnostic>>> = dirs
        .par_iter()
        .with_min_len(8)
        .map(|dir| {
            let cache = cache.as_ref().map(|(cache, _)| cache);
            let slot = check_or_keep(dir, &context, cache, &handler_prefix);
            progress.done.fetch_add(1, Ordering::Relaxed);
            slot
        })
        .collect();
    clock.lap("check");

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
    clock.lap("assemble");
    compilation.timings = clock.timings;
    Ok(compilation)
}

fn check_or_keep(
    dir: &ToolDir,
    context: &Context<'_>,
    cache: Option<&Cache>,
    handler_prefix: &str,
) -> Result<Slot, Vec<Diagnostic>> {
    if let Some(cached) =
        cache.and_then(|cache| cache.get(&dir.name)).filter(|cached| cached.is_current(dir, context.tools))
    {
        return Ok(Slot {
            name: dir.name.clone(),
            fingerprint: cached.fingerprint,
            warnings: cached.warnings.clone(),
            content: Content::Kept(cached.clone()),
        });
    }
    let Checked { tool, diagnostics, fingerprint } = check_tool(dir, context);
    match tool {
        Some(tool) => Ok(Slot {
            name: dir.name.clone(),
            fingerprint,
            warnings: diagnostics,
            content: Content::Fresh {
                tool,
                handler_path: format!("{handler_prefix}{}/handler.js", dir.name),
            },
        }),
        None => Err(diagnostics),
    }
}

/// From the artifact's directory to the tools', so that both can be moved together.
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
    /// True when no tool has an error.
    pub fn is_ok(&self) -> bool {
        self.diagnostics.iter().all(|found| found.severity != Severity::Error)
    }

    /// The toolset's version, when it has one.
    pub fn version(&self) -> Option<String> {
        self.is_ok().then(|| self.version.clone())
    }

    fn collect(&mut self, checked: Vec<Result<Slot, Vec<Diagnostic>>>, dirs: &[ToolDir]) {
        for result in checked {
            match result {
                Ok(slot) => {
                    self.reused += usize::from(matches!(slot.content, Content::Kept(_)));
                    self.diagnostics.extend(slot.warnings.iter().cloned());
                    self.tools.push(slot);
                }
                Err(diagnostics) => self.diagnostics.extend(diagnostics),
            }
        }
        if dirs.is_empty() {
            let finding =
                Finding::error("no-tools", "", Place::File, "there is no tool in the tools directory");
            self.diagnostics.push(finding.help("make one with `toolwright new my-tool`").locate("", None));
        }
        self.diagnostics.extend(twins(dirs));
        // A shared file that is wrong is wrong once, however many tools use it.
        let mut seen = std::collections::HashSet::new();
        self.diagnostics.retain(|found| {
            !found.file.starts_with("../")
                || seen.insert((found.file.clone(), found.span.clone(), found.code.clone()))
        });
        self.diagnostics.sort_by(|a, b| a.place().cmp(&b.place()));
        self.tools.sort_by(|a, b| a.digests().tool_id.cmp(&b.digests().tool_id));
        self.version = artifact::version(self.tools.iter().map(Slot::digests));
    }

    /// Replaces the artifact, unless it says the same already. Only a compilation that is ok has one.
    pub fn write(
        &mut self,
        git_commit: Option<String>,
        timestamp: &Timestamp,
    ) -> Result<Outcome, artifact::Error> {
        let mut clock = Clock::start();
        let header = self.header(git_commit, timestamp.text());
        if let Some((previous, _)) = &self.previous
            && says_the_same(&previous.header, &header, timestamp)
        {
            if self.reused < self.tools.len() {
                self.renew_cache();
            }
            return Ok(Outcome::Unchanged);
        }
        let old = self.previous.as_ref().map(|(_, file)| file);
        let written = artifact::replace(&self.options.out, &header, &self.lines(), old)?;
        clock.lap("write");
        if self.options.cache.is_some() {
            self.remember(header, artifact_fingerprint(&written.metadata), &written.places);
            clock.lap("cache");
        }
        self.timings.0.append(&mut clock.timings.0);
        Ok(Outcome::Written)
    }

    /// The content is the same, but files were touched: their new fingerprints are worth keeping.
    fn renew_cache(&mut self) {
        let Some((previous, _)) = self.previous.take() else { return };
        let place = |slot: &Slot| previous.get(&slot.name).map(|cached| cached.start..cached.end);
        if let Some(places) = self.tools.iter().map(place).collect::<Option<Vec<_>>>() {
            self.remember(previous.header, previous.artifact, &places);
        }
    }

    /// The artifact in memory. Needs a compilation without a cache.
    pub fn to_bytes(&self, git_commit: Option<String>, timestamp: &Timestamp) -> std::io::Result<Vec<u8>> {
        artifact::to_bytes(&self.header(git_commit, timestamp.text()), &self.lines())
    }

    fn header(&self, git_commit: Option<String>, timestamp: &str) -> Header {
        Header {
            content_digest: artifact::content_digest(&self.version, self.tools.iter().map(Slot::digests)),
            version: self.version.clone(),
            git_commit,
            build_timestamp: timestamp.to_owned(),
        }
    }

    fn lines(&self) -> Vec<Line<'_>> {
        self.tools.iter().map(Slot::line).collect()
    }

    fn remember(&mut self, header: Header, artifact: Fingerprint, places: &[Range<u64>]) {
        let tools = self.tools.drain(..).zip(places).map(|(slot, place)| {
            let (digests, modules) = match slot.content {
                Content::Fresh { tool, .. } => (tool.digests, tool.modules),
                Content::Kept(cached) => (cached.digests, cached.modules),
            };
            let (name, fingerprint, warnings) = (slot.name, slot.fingerprint, slot.warnings);
            CachedTool { name, fingerprint, modules, digests, start: place.start, end: place.end, warnings }
        });
        let mut tools: Vec<_> = tools.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Cache { key: std::mem::take(&mut self.key), artifact, header, tools }.store(&self.options.out);
    }
}

/// Whether an artifact with the one header need not be replaced by one with the other.
fn says_the_same(there: &Header, wanted: &Header, timestamp: &Timestamp) -> bool {
    let same_time = matches!(timestamp, Timestamp::Now(_)) || there.build_timestamp == wanted.build_timestamp;
    same_time && there.content_digest == wanted.content_digest && there.git_commit == wanted.git_commit
}

/// When an artifact says that it was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timestamp {
    /// The present: an artifact that would differ in nothing else keeps the one it has.
    Now(String),
    /// Prescribed, for reproducible builds.
    Pinned(String),
}

impl Timestamp {
    fn text(&self) -> &str {
        match self {
            Self::Now(text) | Self::Pinned(text) => text,
        }
    }
}

/// Directories that would have the same tool id.
fn twins(dirs: &[ToolDir]) -> Vec<Diagnostic> {
    let mut first = std::collections::HashMap::new();
    let mut found = Vec::new();
    for dir in dirs {
        let id = dir.name.replace('-', "_").to_lowercase();
        match first.get(&id) {
            None => drop(first.insert(id, dir.name.as_str())),
            Some(twin) => {
                let message =
                    format!("the directories `{twin}` and `{}` both stand for the tool `{id}`", dir.name);
                let finding = Finding::error("dir-duplicate", "", Place::File, message);
                found.push(finding.help("rename or remove one of them").locate(&dir.name, None));
            }
        }
    }
    found
}

struct Clock {
    last: Instant,
    timings: Timings,
}

impl Clock {
    fn start() -> Self {
        Self { last: Instant::now(), timings: Timings::default() }
    }

    fn lap(&mut self, name: &'static str) {
        self.timings.0.push((name, self.last.elapsed()));
        self.last = Instant::now();
    }
}
