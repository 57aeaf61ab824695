//! A toolset: the tools of one version, read from an artifact and from declared files, verified and immutable.
//!
//! Start-up must not pay for what nobody calls: an artifact's lines are found and hashed, and a tool is parsed when
//! it is first asked for. Documents stay in the artifact's text.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io, iter};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolwright_contract::{Category, Mode, ToolSpec};

use crate::artifact::{self, END, FORMAT_VERSION, HANDLER_PATH, TOOLS, content_digest_of};
use crate::declared;
use crate::http::HttpTool;

/// One tool, without its documentation.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub spec: ToolSpec,
    pub summary: String,
    pub implementation: Implementation,
}

/// What answers a call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Implementation {
    /// A handler of the tools directory.
    Module(Module),
    /// This value, always; declared in configuration.
    Mock(Value),
    /// The handler of the program that is registered under this name; declared in configuration.
    Native(String),
    /// A request to an address of the configuration.
    Http(Box<HttpTool>),
}

/// A handler's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Relative to the artifact.
    pub path: String,
    /// Of the handler itself, in lower-case hexadecimal.
    pub sha256: String,
    /// What the handler imports from its own directory: path and digest.
    pub modules: BTreeMap<String, String>,
}

/// A tool's line in the artifact.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(flatten)]
    spec: ToolSpec,
    summary: String,
    handler_path: String,
    handler_sha256: String,
    #[serde(default)]
    handler_modules: BTreeMap<String, String>,
}

impl From<Entry> for Tool {
    fn from(entry: Entry) -> Self {
        let Entry { spec, summary, handler_path: path, handler_sha256: sha256, handler_modules: modules } =
            entry;
        Self { spec, summary, implementation: Implementation::Module(Module { path, sha256, modules }) }
    }
}

/// All tools of one version: the artifact's, then the declared ones.
#[derive(Debug)]
pub struct Toolset {
    /// Changes with every tool; what is declared counts as a whole.
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    pub build_timestamp: String,
    text: String,
    slots: Vec<Slot>,
    /// Their positions follow those of the slots.
    declared: Vec<Tool>,
    /// Before anything was declared.
    artifact_digest: String,
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct Slot {
    line: Range<usize>,
    tool: OnceLock<Option<Tool>>,
}

/// An artifact that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("not a tool registry: {0}")]
    Malformed(String),
    #[error("the tool registry has format {found}, this program reads format {FORMAT_VERSION}")]
    Format { found: u64 },
    #[error("the tool registry was changed after it was built: its contents do not fit its digest")]
    Tampered,
}

impl Error {
    /// A way out, for the person at the terminal.
    pub fn help(&self) -> &'static str {
        "build it again with `toolwright build`"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    format_version: u64,
    version: String,
    content_digest: String,
    git_commit: Option<String>,
    build_timestamp: String,
}

impl Toolset {
    /// Reads and verifies an artifact file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text =
            fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::from_text(text)
    }

    /// Verifies an artifact in memory.
    pub fn from_text(text: String) -> Result<Self, Error> {
        let malformed = |what: &str| Error::Malformed(what.to_owned());
        let tools = text.find(TOOLS).ok_or_else(|| malformed("it has no list of tools"))? + TOOLS.len();
        let head = format!("{}]}}", &text[..tools]);
        let head: Head = serde_json::from_str(&head).map_err(|error| Error::Malformed(error.to_string()))?;
        if head.format_version != FORMAT_VERSION {
            return Err(Error::Format { found: head.format_version });
        }
        if !text.ends_with(END) {
            return Err(malformed("its end is missing"));
        }
        let lines = lines(&text, tools);
        let ids: Option<Vec<&str>> = lines.iter().map(|line| tool_id(&text[line.clone()])).collect();
        // A file that was only re-formatted has other lines than a build writes.
        let ids = ids.ok_or(Error::Tampered)?;
        let digests: Vec<[u8; 32]> =
            lines.par_iter().with_min_len(64).map(|line| content_sha(&text[line.clone()])).collect();
        if content_digest_of(&head.version, ids.iter().copied().zip(&digests)) != head.content_digest {
            return Err(Error::Tampered);
        }
        let by_id = ids.iter().enumerate().map(|(at, id)| ((*id).to_owned(), at)).collect();
        let slots = lines.into_iter().map(|line| Slot { line, tool: OnceLock::new() }).collect();
        Ok(Self {
            version: head.version,
            artifact_digest: head.content_digest.clone(),
            content_digest: head.content_digest,
            git_commit: head.git_commit,
            build_timestamp: head.build_timestamp,
            declared: Vec::new(),
            by_id,
            slots,
            text,
        })
    }

    /// A toolset without tools, to declare some in. Nothing was built, so there is no time of it.
    pub fn empty() -> Self {
        let version = artifact::version(iter::empty());
        let content_digest = content_digest_of(&version, iter::empty());
        Self {
            version,
            artifact_digest: content_digest.clone(),
            content_digest,
            git_commit: None,
            build_timestamp: String::new(),
            text: String::new(),
            slots: Vec::new(),
            declared: Vec::new(),
            by_id: HashMap::new(),
        }
    }

    /// Adds the tools that `file` declares after those that are there. A name that is taken stays with the tool
    /// that has it.
    #[must_use]
    pub fn with_declared(mut self, file: &Path, tools: Vec<Tool>) -> (Self, Vec<declared::Error>) {
        let mut errors = Vec::new();
        for tool in tools {
            let name = tool.spec.tool_id.clone();
            let position = self.slots.len() + self.declared.len();
            match self.by_id.entry(name) {
                hash_map::Entry::Occupied(taken) => {
                    errors.push(declared::Error::Exists { file: file.to_owned(), tool: taken.key().clone() });
                }
                hash_map::Entry::Vacant(free) => {
                    free.insert(position);
                    self.declared.push(tool);
                }
            }
        }
        if !self.declared.is_empty() {
            let digest = declared::digest(&self.artifact_digest, &self.declared);
            self.version = format!("1.0.{}", &digest[..8]);
            self.content_digest = format!("sha256:{digest}");
        }
        (self, errors)
    }

    /// The tool with this id. A line that this program cannot read is as good as absent.
    pub fn get(&self, tool_id: &str) -> Option<&Tool> {
        self.by_id.get(tool_id).and_then(|at| self.parsed(*at))
    }

    /// The full documentation of a tool; a declared one has its description only.
    pub fn documentation(&self, tool_id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Documented {
            documentation: String,
        }
        let at = *self.by_id.get(tool_id)?;
        let Some(slot) = self.slots.get(at) else {
            return self.parsed(at).map(|tool| tool.spec.description.clone());
        };
        let documented: Documented = serde_json::from_str(&self.text[slot.line.clone()]).ok()?;
        Some(documented.documentation)
    }

    /// All that a tool declares about itself: version, category, effects, modes and the rest.
    pub fn metadata(&self, tool_id: &str) -> Option<&ToolSpec> {
        self.get(tool_id).map(|tool| &tool.spec)
    }

    /// The ids of all tools, in their original order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let built = self.slots.iter().filter_map(|slot| tool_id(&self.text[slot.line.clone()]));
        built.chain(self.declared.iter().map(|tool| tool.spec.tool_id.as_str()))
    }

    /// All tools in their original order: the artifact's, then the declared ones as their files have them.
    pub fn list(&self) -> impl Iterator<Item = &Tool> {
        (0..self.slots.len() + self.declared.len()).filter_map(|at| self.parsed(at))
    }

    /// Those that the configuration declares.
    pub fn declared(&self) -> &[Tool] {
        &self.declared
    }

    /// The tools that a list of allowed names lets through, in their original order. `None` allows all, and a
    /// name that no tool has allows nothing.
    pub fn filter<S: AsRef<str>>(
        &self,
        allowed_tools: Option<&[S]>,
    ) -> impl Iterator<Item = &Tool> + use<'_, S> {
        let positions = match allowed_tools {
            None => (0..self.slots.len() + self.declared.len()).collect(),
            Some(names) => {
                let found: BTreeSet<usize> =
                    names.iter().filter_map(|name| self.by_id.get(name.as_ref()).copied()).collect();
                found.into_iter().collect::<Vec<_>>()
            }
        };
        positions.into_iter().filter_map(|at| self.parsed(at))
    }

    /// The id and summary of every tool, in their original order.
    pub fn summaries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list().map(|tool| (tool.spec.tool_id.as_str(), tool.summary.as_str()))
    }

    /// The tools of one category, in their original order.
    pub fn by_category(&self, category: Category) -> impl Iterator<Item = &Tool> {
        self.list().filter(move |tool| tool.spec.category == category)
    }

    /// The tools that a session of this mode may use, in their original order.
    pub fn for_mode(&self, mode: Mode) -> impl Iterator<Item = &Tool> {
        self.list().filter(move |tool| tool.spec.allowed_modes.contains(&mode))
    }

    fn parsed(&self, at: usize) -> Option<&Tool> {
        let Some(slot) = self.slots.get(at) else { return self.declared.get(at - self.slots.len()) };
        let read = || serde_json::from_str::<Entry>(&self.text[slot.line.clone()]).ok().map(Tool::from);
        slot.tool.get_or_init(read).as_ref()
    }
}

/// The lines of the tools, which begin where the list does.
fn lines(text: &str, tools: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = tools;
    for line in text[tools..].split_inclusive('\n') {
        let content = line.trim();
        let start = at + (line.len() - line.trim_start().len());
        if content.starts_with('{') {
            found.push(start..start + content.trim_end_matches(',').len());
        }
        at += line.len();
    }
    found
}

/// Ids are snake_case, so nothing in them is escaped.
fn tool_id(line: &str) -> Option<&str> {
    line.strip_prefix("{\"toolId\":\"")?.split_once('"').map(|(id, _)| id)
}

/// The digest covers an entry up to its handler's path, which depends on where the artifact lies.
fn content_sha(entry: &str) -> [u8; 32] {
    let covered = entry.rfind(HANDLER_PATH).map_or(entry, |at| &entry[..at]);
    Sha256::digest(covered).into()
}

#[cfg(test)]
#[path = "toolset_tests.rs"]
mod tests;
