//! The Python that has Radicale and icalendar, installed once by scripts/radicale.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Fails, with the command that mends it, where they cannot be had.
pub fn python() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/radicale");
    let output = Command::new(&script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "Radicale and icalendar are missing: run {}", script.display());
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// What a program prints as JSON, given a text on stdin.
pub fn run(program: &str, input: &str) -> Value {
    let mut child = Command::new(python())
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    serde_json::from_slice(&output.stdout).unwrap()
}
