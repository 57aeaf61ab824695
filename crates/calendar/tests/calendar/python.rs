//! The Python with Radicale and icalendar that scripts/radicale installs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Panics with the command to run if they are not installed.
pub fn python() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/radicale");
    let output = Command::new(&script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "Radicale and icalendar are missing: run {}", script.display());
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Runs a program with `input` on stdin and returns the JSON that it prints.
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
