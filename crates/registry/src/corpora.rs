//! For tests: the public corpora, which are not part of the project.

use std::path::{Path, PathBuf};

/// A folder of the corpora, when `TOOLWRIGHT_CORPORA` names them. A name that leads nowhere is a failure;
/// no name at all means that only what the project has itself can be tested, and that is said.
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
