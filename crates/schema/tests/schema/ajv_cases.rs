//! Test support: the cases that real Ajv decided.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The directory of the project's own cases that Ajv decided.
pub fn own_ajv_cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ajv")
}

/// The cases of all JSON files in a directory.
pub fn read_cases(directory: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let json = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    json.flat_map(|file| serde_json::from_slice::<Vec<Value>>(&std::fs::read(file).unwrap()).unwrap())
        .collect()
}
