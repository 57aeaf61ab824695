//! An artifact, read back: its header and tools, with the digests verified.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolwright_contract::{Category, Mode, ToolSpec};

use crate::artifact::{FORMAT_VERSION, HANDLER_PATH, digest_list};

/// One tool of an artifact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    #[serde(flatten)]
    pub spec: ToolSpec,
    pub summary: String,
    pub documentation: String,
    /// Relative to the artifact.
    pub handler_path: String,
    pub handler_sha256: String,
    #[serde(default)]
    pub handler_modules: HashMap<String, String>,
}

/// All tools of one version. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    pub build_timestamp: String,
    tools: Vec<Tool>,
    by_id: HashMap<String, usize>,
}

/// An artifact that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("not a tool registry: {0}")]
    Malformed(#[from] serde_json::Error),
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
struct File<'a> {
    format_version: u64,
    version: String,
    content_digest: String,
    git_commit: Option<String>,
    build_timestamp: String,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl Catalog {
    /// Reads and verifies an artifact file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::from_bytes(&bytes)
    }

    /// Verifies an artifact in memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let file: File<'_> = serde_json::from_slice(bytes)?;
        if file.format_version != FORMAT_VERSION {
            return Err(Error::Format { found: file.format_version });
        }
        let tools: Vec<Tool> =
            file.tools.iter().map(|raw| serde_json::from_str(raw.get())).collect::<Result<_, _>>()?;
        let digests: Vec<[u8; 32]> = file.tools.iter().map(|raw| content_sha(raw.get())).collect();
        let pairs = tools.iter().map(|tool| tool.spec.tool_id.as_str()).zip(&digests);
        if format!("sha256:{}", digest_list(pairs)) != file.content_digest {
            return Err(Error::Tampered);
        }
        let by_id = tools.iter().enumerate().map(|(at, tool)| (tool.spec.tool_id.clone(), at)).collect();
        Ok(Self {
            version: file.version,
            content_digest: file.content_digest,
            git_commit: file.git_commit,
            build_timestamp: file.build_timestamp,
            tools,
            by_id,
        })
    }

    /// The tool with this id.
    pub fn get(&self, tool_id: &str) -> Option<&Tool> {
        self.by_id.get(tool_id).and_then(|at| self.tools.get(*at))
    }

    /// All tools, in the artifact's order.
    pub fn list(&self) -> &[Tool] {
        &self.tools
    }

    /// The tools of one category, in the artifact's order.
    pub fn by_category(&self, category: Category) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(move |tool| tool.spec.category == category)
    }

    /// The tools that a session of this mode may use, in the artifact's order.
    pub fn for_mode(&self, mode: Mode) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(move |tool| tool.spec.allowed_modes.contains(&mode))
    }
}

/// The digest covers an entry up to its handler's path, which depends on where the artifact lies.
fn content_sha(entry: &str) -> [u8; 32] {
    let covered = entry.rfind(HANDLER_PATH).map_or(entry, |at| &entry[..at]);
    Sha256::digest(covered).into()
}
