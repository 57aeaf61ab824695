//! `toolwright init`: creates a project.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::editor;
use super::template::{Template, cannot_write, write_dir};
use crate::output::{self, Failure};

/// Create a project: tools, prompts, configuration
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright init my-agent && cd my-agent && toolwright build")]
pub struct Init {
    /// The directory to create; none of the project's files may exist there
    dir: PathBuf,
}

pub fn run(args: &Init) -> Result<()> {
    let dir = &args.dir;
    let (kept, files): (Vec<Template>, Vec<Template>) = project_files(dir)
        .into_iter()
        .partition(|file| KEPT.contains(&file.path.as_str()) && exists(dir, &file.path));
    let existing: Vec<&str> =
        files.iter().map(|file| file.path.as_str()).filter(|path| exists(dir, path)).collect();
    if !existing.is_empty() {
        let message = format!("{} has {} already", dir.display(), list_some(&existing));
        return Err(Failure::new(message, "move them away, or name another directory").into());
    }
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|error| cannot_write(dir, &error))?;
    }
    write_dir(dir, &files).map_err(|error| cannot_write(dir, &error))?;
    let dir = dir.display();
    output::success("created", &dir);
    for file in kept {
        output::message(format_args!("  kept your {}", file.path));
        if file.path == ".gitignore" {
            let lines = file.text.lines().collect::<Vec<_>>().join(", ");
            output::message(format_args!("  add these lines to it: {lines}"));
        }
    }
    output::message(format_args!("  cd {dir}\n  toolwright build\n  toolwright list"));
    Ok(())
}

/// The files of a directory that stay as they are.
const KEPT: [&str; 3] = ["README.md", ".gitattributes", ".gitignore"];
/// More names are counted.
const MAX_NAMED: usize = 5;

fn exists(dir: &Path, path: &str) -> bool {
    dir.join(path).symlink_metadata().is_ok()
}

fn list_some(paths: &[&str]) -> String {
    let named = paths.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The files of an example tool, below `tools/`.
macro_rules! example_tool {
    ($name:literal) => {
        [
            (
                concat!("tools/", $name, "/schema.json"),
                include_str!(concat!("../../templates/project/", $name, "/schema.json")),
            ),
            (
                concat!("tools/", $name, "/doc_summary.md"),
                include_str!(concat!("../../templates/project/", $name, "/doc_summary.md")),
            ),
            (
                concat!("tools/", $name, "/doc.md"),
                include_str!(concat!("../../templates/project/", $name, "/doc.md")),
            ),
            (
                concat!("tools/", $name, "/handler.js"),
                include_str!(concat!("../../templates/project/", $name, "/handler.js")),
            ),
            (
                concat!("tools/", $name, "/tests/works.json"),
                include_str!(concat!("../../templates/project/", $name, "/tests/works.json")),
            ),
        ]
    };
}

fn project_files(dir: &Path) -> Vec<Template> {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = absolute.file_name().map_or("agent".into(), |name| name.to_string_lossy());
    let values = [("PROJECT", &*name)];
    let fixed = [
        ("README.md", include_str!("../../templates/project/README.md")),
        ("toolwright.toml", include_str!("../../templates/project/toolwright.toml")),
        ("prompts/core.md", include_str!("../../templates/project/core.md")),
        ("prompts/voice-behavior.md", include_str!("../../templates/project/voice-behavior.md")),
        (".gitattributes", include_str!("../../templates/project/gitattributes")),
    ];
    let tools = [example_tool!("kb-search"), example_tool!("send-note"), example_tool!("count-words")];
    let files = fixed.into_iter().chain(tools.into_iter().flatten());
    let files = files.map(|(path, text)| Template::new(path, text, &values));
    files.chain(editor::files("tools")).collect()
}
