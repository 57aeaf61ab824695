//! Looks up the commit of the tools with `git`, while the build runs.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Enough digits to be unique in any repository, and a fixed number of them.
const DIGITS: usize = 12;

/// A running `git rev-parse`.
#[derive(Debug)]
pub struct CommitLookup(Option<Child>);

impl CommitLookup {
    pub fn start(dir: &Path) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args(["rev-parse", "HEAD"]);
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok())
    }

    /// The commit; `None` without git, or outside a repository.
    pub fn finish(self) -> Option<String> {
        let output = self.0?.wait_with_output().ok().filter(|output| output.status.success())?;
        let commit = String::from_utf8(output.stdout).ok()?;
        commit.trim().get(..DIGITS).map(str::to_owned)
    }
}
