//! The commit that the tools are at, asked of `git` while the build goes on.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Enough digits to be unique in any repository, and always the same number of them.
const DIGITS: usize = 12;

/// A question under way.
#[derive(Debug)]
pub struct Commit(Option<Child>);

impl Commit {
    /// Asks. Without git, or outside a repository, there is no answer.
    pub fn ask(dir: &Path) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args(["rev-parse", "HEAD"]);
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok())
    }

    /// The answer.
    pub fn answer(self) -> Option<String> {
        let output = self.0?.wait_with_output().ok().filter(|output| output.status.success())?;
        let commit = String::from_utf8(output.stdout).ok()?;
        commit.trim().get(..DIGITS).map(str::to_owned)
    }
}
