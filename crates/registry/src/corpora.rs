//! Test data: the public corpora, which are not part of the project.

#![expect(clippy::disallowed_methods, reason = "tests find the public corpora by an environment variable")]

use std::path::{Path, PathBuf};

/// A corpus in the directory that `TOOLWRIGHT_CORPORA` names. `None`, with a message, if the variable is not set: then
/// only the project's own cases are tested. Panics if the corpus does not exist.
pub(crate) fn corpus(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: `{name}` is not tested, only the project's own cases are");
        return None;
    };
    let path = Path::new(&folder).join(name);
    assert!(
        path.exists(),
        "there is no {}: set TOOLWRIGHT_CORPORA to the folder that holds it",
        path.display()
    );
    Some(path)
}
