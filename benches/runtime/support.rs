//! The tools of the benchmark, built once in Cargo's directory for temporary files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Result, generate};

/// `count` generated tools, built. Returns the artifact.
pub fn generated(count: usize) -> Result<PathBuf> {
    // Tools of another version of the generator are generated again.
    const GENERATOR: &str = include_str!("../build/generate.rs");
    let (work, tools) = place(&format!("runtime-bench-{count}"));
    let mark = work.join("complete");
    if fs::read_to_string(&mark).ok().as_deref() != Some(GENERATOR) {
        eprintln!("generating {count} tools in {}", work.display());
        let _ = fs::remove_dir_all(&work);
        generate::generate(&tools, count)?;
        share_with_node(&work, &tools)?;
        fs::write(mark, GENERATOR)?;
    }
    build(&work, &tools)
}

/// The id of the generated tool with this number.
pub fn id_of(artifact: &Path, number: usize) -> Result<String> {
    let tools = artifact.with_file_name("tools");
    for entry in fs::read_dir(&tools)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(&format!("-{number:05}")) {
            return Ok(name.replace('-', "_"));
        }
    }
    Err(format!("{} has no tool number {number}", tools.display()).into())
}

/// The tools whose calls are measured: one of the benchmark's own and two of the reference toolset, built.
pub fn reference() -> Result<PathBuf> {
    let (work, tools) = place("runtime-bench-calls");
    let _ = fs::remove_dir_all(&tools);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for tool in ["benches/runtime/trivial-echo", "tools/kb-search", "tools/ignore-user"] {
        copy(&root.join(tool), &tools)?;
    }
    build(&work, &tools)
}

fn place(name: &str) -> (PathBuf, PathBuf) {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let tools = work.join("tools");
    (work, tools)
}

fn copy(from: &Path, tools: &Path) -> Result<()> {
    let to = tools.join(from.file_name().unwrap_or_default());
    fs::create_dir_all(&to)?;
    for file in ["doc.md", "doc_summary.md", "handler.js"] {
        fs::copy(from.join(file), to.join(file))?;
    }
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(from.join("schema.json"))?)?;
    // A rate limit would end the measurement.
    schema.as_object_mut().and_then(|schema| schema.shift_remove("permissions"));
    Ok(fs::write(to.join("schema.json"), serde_json::to_string_pretty(&schema)?)?)
}

/// Files that the program provides: the shared module, and `type: module`.
fn share_with_node(work: &Path, tools: &Path) -> Result<()> {
    fs::create_dir_all(tools.join("_core"))?;
    let error_types = include_str!("../../crates/engine/src/js/error-types.js");
    fs::write(tools.join("_core/error-types.js"), error_types)?;
    Ok(fs::write(work.join("package.json"), r#"{"type": "module"}"#)?)
}

fn build(work: &Path, tools: &Path) -> Result<PathBuf> {
    let artifact = work.join("tool_registry.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.arg("build").arg(tools).arg("--out").arg(&artifact).arg("--quiet").stdout(Stdio::null());
    // Ignores the configuration of the current directory.
    let status = command.current_dir(work).status()?;
    if status.success() { Ok(artifact) } else { Err(format!("{command:?} failed: {status}").into()) }
}
