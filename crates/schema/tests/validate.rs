//! The validator against what others decided: Ajv, the official suite, tools from the wild, and hostile input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "validate/ajv_corpus.rs"]
mod ajv_corpus;
#[path = "validate/hostile.rs"]
mod hostile;
#[path = "validate/real_tools.rs"]
mod real_tools;
#[path = "validate/standard.rs"]
mod standard;
#[path = "validate/suite.rs"]
mod suite;

/// A part of the public corpora, when `TOOLWRIGHT_CORPORA` names them. A name that leads nowhere is a failure; no
/// name at all means that only what the project has itself can be tested, and that is said.
fn corpus(name: &str) -> Option<std::path::PathBuf> {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: `{name}` is not tested, only the project's own cases are");
        return None;
    };
    let path = std::path::Path::new(&folder).join(name);
    assert!(
        path.exists(),
        "there is no {}: set TOOLWRIGHT_CORPORA to the folder that holds it",
        path.display()
    );
    Some(path)
}
