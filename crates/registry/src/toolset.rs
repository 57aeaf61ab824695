//! A toolset: the tools of one version, read from an artifact and from declared files, verified and immutable.
//!
//! To start fast, the lines of the artifact are only located and hashed. A tool is parsed when it is first used, and
//! its documentation when it is requested.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io, iter};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolwright_contract::{Category, Mode, ToolSpec};

use crate::artifact::{self, END, FORMAT_VERSION, HANDLER_PATH, Header, TOOLS, content_digest_of};
use crate::declared;
use crate::describe::{DESCRIBE, describe_tool};
use crate::http_tool::HttpTool;

/// One tool, without its documentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub spec: ToolSpec,
    pub summary: String,
    pub implementation: Implementation,
}

/// The code or data behind a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// A handler in the tools directory.
    Module(Module),
    /// A fixed result, declared in configuration.
    Mock(Value),
    /// A handler that the program registers under this name, declared in configuration.
    Native(String),
    /// An HTTP request, declared in configuration.
    Http(Box<HttpTool>),
}

/// A handler's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Relative to the artifact.
    #[serde(rename = "handlerPath")]
    pub path: String,
    /// The digest of the handler, in lower-case hexadecimal.
    #[serde(rename = "handlerSha256")]
    pub sha256: String,
    /// The modules that the handler imports: path and digest.
    #[serde(rename = "handlerModules", default)]
    pub modules: BTreeMap<String, String>,
}

/// A tool's line in the artifact.
#[derive(Deserialize)]
struct Entry {
    #[serde(flatten)]
    spec: ToolSpec,
    summary: String,
    #[serde(flatten)]
    module: Module,
}

/// All tools of one version: the artifact's, then the declared ones.
#[derive(Debug)]
pub struct Toolset {
    /// Changes with every change of a tool, declared ones included.
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    pub build_timestamp: String,
    text: String,
    artifact_tools: Vec<ArtifactTool>,
    /// Their positions follow those of the artifact's tools.
    declared: Vec<Tool>,
    /// The digest of the artifact alone.
    artifact_digest: String,
    by_id: HashMap<String, usize>,
}

/// A tool of the artifact, parsed when it is first used.
#[derive(Debug)]
struct ArtifactTool {
    line: Range<usize>,
    tool: OnceLock<Option<Tool>>,
}

/// The artifact cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("this is not a tool registry: {0}")]
    Malformed(String),
    #[error("the tool registry has format {found}, this program reads format {FORMAT_VERSION}")]
    Format { found: u64 },
    #[error("the tool registry was changed after it was built: its contents do not match its digest")]
    Tampered,
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        "build it again with `toolwright build`"
    }
}

impl Toolset {
    /// Reads and verifies an artifact file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text =
            fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::from_text(text)
    }

    /// The handlers of the artifact that have no file. Their paths are relative to `directory`, the artifact's own.
    pub fn missing_handlers(&self, directory: &Path) -> Vec<String> {
        let paths = self.artifact_tools.iter().filter_map(|tool| handler_path(&self.text[tool.line.clone()]));
        paths.filter(|path| !directory.join(path).is_file()).collect()
    }

    /// Verifies an artifact in memory.
    pub fn from_text(text: String) -> Result<Self, Error> {
        let malformed = |what: &str| Error::Malformed(what.to_owned());
        let tools = text.find(TOOLS).ok_or_else(|| malformed("it has no list of tools"))? + TOOLS.len();
        let head = format!("{}]}}", &text[..tools]);
        let head: Header =
            serde_json::from_str(&head).map_err(|error| Error::Malformed(error.to_string()))?;
        if head.format_version != FORMAT_VERSION {
            return Err(Error::Format { found: head.format_version });
        }
        if !text.ends_with(END) {
            return Err(malformed("it is truncated"));
        }
        let lines = lines(&text, tools);
        let ids: Option<Vec<&str>> = lines.iter().map(|line| tool_id(&text[line.clone()])).collect();
        // A re-formatted file has other lines than a build writes.
        let ids = ids.ok_or(Error::Tampered)?;
        let digests: Vec<[u8; 32]> =
            lines.par_iter().with_min_len(64).map(|line| content_sha(&text[line.clone()])).collect();
        if content_digest_of(&head.version, ids.iter().copied().zip(&digests)) != head.content_digest {
            return Err(Error::Tampered);
        }
        let by_id = ids.iter().enumerate().map(|(position, id)| ((*id).to_owned(), position)).collect();
        let tool = |line| ArtifactTool { line, tool: OnceLock::new() };
        let artifact_tools = lines.into_iter().map(tool).collect();
        Ok(Self {
            git_commit: head.git_commit,
            build_timestamp: head.build_timestamp,
            artifact_tools,
            by_id,
            text,
            ..Self::without_tools(head.version, head.content_digest)
        })
    }

    /// A toolset without an artifact, for declared tools. It has no build time.
    pub fn empty() -> Self {
        let version = artifact::version(iter::empty());
        let content_digest = content_digest_of(&version, iter::empty());
        Self::without_tools(version, content_digest)
    }

    fn without_tools(version: String, content_digest: String) -> Self {
        Self {
            version,
            artifact_digest: content_digest.clone(),
            content_digest,
            git_commit: None,
            build_timestamp: String::new(),
            text: String::new(),
            artifact_tools: Vec::new(),
            declared: Vec::new(),
            by_id: HashMap::new(),
        }
    }

    /// Appends the tools that `file` declares. A tool whose name another tool has is rejected.
    #[must_use]
    pub fn with_declared(mut self, file: &Path, tools: Vec<Tool>) -> (Self, Vec<declared::Error>) {
        let mut errors = Vec::new();
        for tool in tools {
            let name = tool.spec.tool_id.clone();
            let position = self.artifact_tools.len() + self.declared.len();
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

    /// The tool with this id. A line that cannot be parsed counts as absent.
    pub fn get(&self, tool_id: &str) -> Option<&Tool> {
        self.by_id.get(tool_id).and_then(|position| self.parsed(*position))
    }

    /// The full documentation of a tool; that of a declared one is its description.
    pub fn documentation(&self, tool_id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct ToolDocumentation {
            documentation: String,
        }
        let position = *self.by_id.get(tool_id)?;
        let Some(tool) = self.artifact_tools.get(position) else {
            return self.parsed(position).map(|tool| tool.spec.description.clone());
        };
        let documented: ToolDocumentation = serde_json::from_str(&self.text[tool.line.clone()]).ok()?;
        Some(documented.documentation)
    }

    /// The fields that a tool declares: version, category, side effects, modes and the rest.
    pub fn metadata(&self, tool_id: &str) -> Option<&ToolSpec> {
        self.get(tool_id).map(|tool| &tool.spec)
    }

    /// The ids of all tools, in their original order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let built = self.artifact_tools.iter().filter_map(|tool| tool_id(&self.text[tool.line.clone()]));
        built.chain(self.declared.iter().map(|tool| tool.spec.tool_id.as_str()))
    }

    /// All tools in their original order: the artifact's, then the declared ones as their files have them.
    pub fn list(&self) -> impl Iterator<Item = &Tool> {
        (0..self.artifact_tools.len() + self.declared.len()).filter_map(|position| self.parsed(position))
    }

    /// The text of the artifact; empty if there is none.
    pub(crate) fn artifact_text(&self) -> &str {
        &self.text
    }

    /// The tools that the configuration declares.
    pub fn declared(&self) -> &[Tool] {
        &self.declared
    }

    /// The tools with an allowed name, in their original order. `None` allows all; unknown names are ignored.
    pub fn filter<S: AsRef<str>>(
        &self,
        allowed_tools: Option<&[S]>,
    ) -> impl Iterator<Item = &Tool> + use<'_, S> {
        let position = |name: &S| self.by_id.get(name.as_ref()).copied();
        let positions: BTreeSet<usize> = match allowed_tools {
            None => (0..self.artifact_tools.len() + self.declared.len()).collect(),
            Some(names) => names.iter().filter_map(position).collect(),
        };
        positions.into_iter().filter_map(|position| self.parsed(position))
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

    /// The tools that models see: those that `is_usable` accepts, in their original order, and `reg_describe`.
    pub fn for_models(&self, is_usable: impl Fn(&Tool) -> bool) -> impl Iterator<Item = &Tool> {
        let describe = self.get(DESCRIBE).is_none().then(describe_tool);
        self.list().filter(move |tool| is_usable(tool)).chain(describe)
    }

    fn parsed(&self, position: usize) -> Option<&Tool> {
        let Some(ArtifactTool { line, tool }) = self.artifact_tools.get(position) else {
            return self.declared.get(position - self.artifact_tools.len());
        };
        let parse = || {
            let Entry { spec, summary, module } = serde_json::from_str(&self.text[line.clone()]).ok()?;
            Some(Tool { spec, summary, implementation: Implementation::Module(module) })
        };
        tool.get_or_init(parse).as_ref()
    }
}

/// The lines of the tools. `tools` is where the list begins.
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

/// The id of a tool's line. Ids are snake_case, so they contain no escapes.
fn tool_id(line: &str) -> Option<&str> {
    line.strip_prefix("{\"toolId\":\"")?.split_once('"').map(|(id, _)| id)
}

/// The handler's path in a tool's line: its last field.
fn handler_path(line: &str) -> Option<String> {
    let (_, path) = line.rsplit_once(HANDLER_PATH)?;
    serde_json::from_str(path.strip_suffix('}')?).ok()
}

/// The digest covers an entry up to its handler's path, which depends on the path of the artifact.
fn content_sha(entry: &str) -> [u8; 32] {
    let covered = entry.rfind(HANDLER_PATH).map_or(entry, |at| &entry[..at]);
    Sha256::digest(covered).into()
}

#[cfg(test)]
#[path = "toolset_tests.rs"]
mod tests;
