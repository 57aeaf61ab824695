//! A toolset: the tools of one version, read from an artifact, verified and immutable.
//!
//! Start-up must not pay for what nobody calls: lines are found and hashed, and a tool is parsed when it is first
//! asked for. Documents stay in the artifact's text.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

use rayon::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toolwright_contract::{Category, Mode, ToolSpec};

use crate::artifact::{END, FORMAT_VERSION, HANDLER_PATH, TOOLS, content_digest_of};

/// One tool of an artifact, without its documentation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    #[serde(flatten)]
    pub spec: ToolSpec,
    pub summary: String,
    /// Relative to the artifact.
    pub handler_path: String,
    pub handler_sha256: String,
    #[serde(default)]
    pub handler_modules: HashMap<String, String>,
}

/// All tools of one version.
#[derive(Debug)]
pub struct Toolset {
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    pub build_timestamp: String,
    text: String,
    slots: Vec<Slot>,
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
            content_digest: head.content_digest,
            git_commit: head.git_commit,
            build_timestamp: head.build_timestamp,
            by_id,
            slots,
            text,
        })
    }

    /// The tool with this id. A line that this program cannot read is as good as absent.
    pub fn get(&self, tool_id: &str) -> Option<&Tool> {
        self.by_id.get(tool_id).and_then(|at| self.parsed(*at))
    }

    /// The full documentation of a tool.
    pub fn documentation(&self, tool_id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Documented {
            documentation: String,
        }
        let slot = self.slots.get(*self.by_id.get(tool_id)?)?;
        let documented: Documented = serde_json::from_str(&self.text[slot.line.clone()]).ok()?;
        Some(documented.documentation)
    }

    /// The ids of all tools, in the artifact's order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| tool_id(&self.text[slot.line.clone()]))
    }

    /// All tools, in the artifact's order.
    pub fn list(&self) -> impl Iterator<Item = &Tool> {
        (0..self.slots.len()).filter_map(|at| self.parsed(at))
    }

    /// The tools of one category, in the artifact's order.
    pub fn by_category(&self, category: Category) -> impl Iterator<Item = &Tool> {
        self.list().filter(move |tool| tool.spec.category == category)
    }

    /// The tools that a session of this mode may use, in the artifact's order.
    pub fn for_mode(&self, mode: Mode) -> impl Iterator<Item = &Tool> {
        self.list().filter(move |tool| tool.spec.allowed_modes.contains(&mode))
    }

    fn parsed(&self, at: usize) -> Option<&Tool> {
        let slot = self.slots.get(at)?;
        slot.tool.get_or_init(|| serde_json::from_str(&self.text[slot.line.clone()]).ok()).as_ref()
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
