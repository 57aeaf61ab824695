//! The packages of the Node programs that the benchmarks are compared with.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A script of `benches/node-builder`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/node-builder").join(name)
}

/// Installs what the scripts import, on first use.
pub fn install_packages() -> Result<(), Box<dyn Error>> {
    let dir = script("");
    if dir.join("node_modules/ajv").exists() {
        return Ok(());
    }
    let status = Command::new("npm").args(["ci", "--silent"]).current_dir(&dir).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(
            "cannot install the Node programs' packages: it needs node and npm; `--no-node` leaves them out"
                .into(),
        ),
    }
}
