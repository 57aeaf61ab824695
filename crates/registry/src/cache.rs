//! The state of the last build, so that unchanged tools are not read again.
//! A cache that is missing, of another program or damaged is ignored; it never changes the result of a build.

use std::fs::{self, File, Metadata};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::artifact::{Header, sibling_path};
use crate::check::TOOL_FILES;
use crate::compiled_tool::Digests;
use crate::diagnostic::Diagnostic;
use crate::fingerprint::Fingerprint;
use crate::source::ToolDir;

/// The last successful build into one artifact.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cache {
    /// Made of the program, the path of its inputs and the shared definitions. A cache with another key is not used.
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
    /// The bytes of its line in the artifact.
    pub line: Range<u64>,
    pub warnings: Vec<Diagnostic>,
}

impl Cache {
    /// The cache of the artifact at `out`, if it has this key and belongs to the artifact that is there.
    /// The artifact is returned open: its path may lead to another file a moment later.
    pub fn load(out: &Path, key: &str) -> Option<(Self, File)> {
        let bytes = fs::read(sibling_path(out, "cache")).ok()?;
        let cache: Self = postcard::from_bytes(&bytes).ok()?;
        let artifact = File::open(out).ok()?;
        let is_same = artifact_fingerprint(&artifact.metadata().ok()?).matches(&cache.artifact);
        (cache.key == key && is_same).then_some((cache, artifact))
    }

    /// Stores the cache for the next build. An error here does not fail the build.
    pub fn store(&self, out: &Path) {
        let Ok(bytes) = postcard::to_stdvec(self) else { return };
        let temporary = sibling_path(out, &format!("cache.{}.tmp", std::process::id()));
        if fs::write(&temporary, bytes)
            .and_then(|()| fs::rename(&temporary, sibling_path(out, "cache")))
            .is_err()
        {
            let _ = fs::remove_file(&temporary);
        }
    }

    /// The entry of a tool directory. The list is sorted by name.
    pub fn get(&self, name: &str) -> Option<&CachedTool> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().map(|at| &self.tools[at])
    }
}

impl CachedTool {
    /// Whether the directory is unchanged, by its metadata.
    pub fn is_current(&self, dir: &ToolDir) -> bool {
        if !self.fingerprint.is_trusted() || dir.is_symlink {
            return false;
        }
        let now = Fingerprint::read(
            &dir.path,
            TOOL_FILES.into_iter().chain(self.modules.iter().map(String::as_str)),
        );
        now.is_some_and(|now| now.matches(&self.fingerprint))
    }
}

/// The fingerprint of the artifact itself.
pub(crate) fn artifact_fingerprint(metadata: &Metadata) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.add("", metadata);
    fingerprint
}
