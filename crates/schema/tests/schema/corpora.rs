//! Test support: the public corpora, which are not part of the repository.

#![allow(clippy::disallowed_methods, reason = "tests find the public corpora by an environment variable")]

use std::path::{Path, PathBuf};

/// A part of the public corpora, if `TOOLWRIGHT_CORPORA` names their directory. Fails when the directory lacks it.
/// Without the variable, only the project's own cases are tested.
pub fn corpus(name: &str) -> Option<PathBuf> {
    let Some(directory) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: `{name}` is not tested, only the project's own cases are");
        return None;
    };
    let path = Path::new(&directory).join(name);
    assert!(
        path.exists(),
        "{} does not exist: set TOOLWRIGHT_CORPORA to the directory that has it",
        path.display()
    );
    Some(path)
}
