//! What the last build knew, so that an unchanged tool is not read again.
//! A cache that is absent, foreign or damaged is as good as none; it never changes what a build gives.

use std::fs::{self, File, Metadata};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::artifact::{Header, beside};
use crate::compiled::Digests;
use crate::diagnostic::Diagnostic;
use crate::fingerprint::{Fingerprint, Root};
use crate::source::ToolDir;

/// The last successful build into one artifact.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cache {
    /// The program, its inputs' place and the shared definitions: another key, another cache.
    pub key: String,
    /// The artifact as that build left it.
    pub artifact: Fingerprint,
    pub header: Header,
    pub tools: Vec<CachedTool>,
}

/// One tool of that build.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CachedTool {
    pub name: String,
    pub fingerprint: Fingerprint,
    pub modules: Vec<String>,
    pub digests: Digests,
    /// Where its line stands in the artifact.
    pub start: u64,
    pub end: u64,
    pub warnings: Vec<Diagnostic>,
}

impl Cache {
    /// The cache of the artifact at `out`, if it is this key's and the artifact is still the one it speaks of.
    /// The artifact comes with it, open: what stands at its path may be another one a moment later.
    pub fn load(out: &Path, key: &str) -> Option<(Self, File)> {
        let bytes = fs::read(beside(out, "cache")).ok()?;
        let cache: Self = postcard::from_bytes(&bytes).ok()?;
        let artifact = File::open(out).ok()?;
        let is_same = artifact_fingerprint(&artifact.metadata().ok()?).matches(&cache.artifact);
        (cache.key == key && is_same).then_some((cache, artifact))
    }

    /// Keeps the cache for the next build. Failing to is no failure of the build.
    pub fn store(&self, out: &Path) {
        let Ok(bytes) = postcard::to_stdvec(self) else { return };
        let temporary = beside(out, &format!("cache.{}.tmp", std::process::id()));
        if fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, beside(out, "cache"))).is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    /// The entry of a directory, found by its place in the sorted list.
    pub fn get(&self, name: &str) -> Option<&CachedTool> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().map(|at| &self.tools[at])
    }
}

impl CachedTool {
    /// True when the directory is as it was: told from metadata alone.
    pub fn is_current(&self, dir: &ToolDir, root: &Root) -> bool {
        if !self.fingerprint.is_trusted() || dir.is_symlink {
            return false;
        }
        let files = ["schema.json", "doc_summary.md", "doc.md", "handler.js"].into_iter();
        let now = root.fingerprint(&dir.name, files.chain(self.modules.iter().map(String::as_str)));
        now.is_some_and(|now| now.matches(&self.fingerprint))
    }
}

/// The state of the artifact itself.
pub(crate) fn artifact_fingerprint(metadata: &Metadata) -> Fingerprint {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add("", metadata);
    fingerprint
}
