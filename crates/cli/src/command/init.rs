//! `toolwright init`: a whole starter project.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use toolwright_contract::{Category, Mode};

use super::new::tool_files;
use super::template::{Template, write_dir};
use crate::output::{self, Failure};

pub fn run(dir: &Path) -> Result<ExitCode> {
    let is_empty = std::fs::read_dir(dir).map(|mut entries| entries.next().is_none());
    if is_empty.is_ok_and(|is_empty| !is_empty) {
        return Err(Failure::new(
            format!("{} is not empty", dir.display()),
            "name a directory that does not exist yet",
        )
        .into());
    }
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|error| cannot_write(dir, &error))?;
    }
    write_dir(dir, &project_files(dir)).map_err(|error| cannot_write(dir, &error))?;
    let shown = dir.display();
    output::message(format_args!("\x1b[1;32mcreated\x1b[0m {shown}"));
    output::message(format_args!("  cd {shown}\n  toolwright build\n  toolwright list"));
    Ok(ExitCode::SUCCESS)
}

fn cannot_write(dir: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", dir.display()), "name a place that can be written")
}

fn project_files(dir: &Path) -> Vec<Template> {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name =
        absolute.file_name().map_or_else(|| "agent".into(), |name| name.to_string_lossy().into_owned());
    let values = [("PROJECT", name.as_str())];
    let fixed = [
        ("README.md", include_str!("../../templates/project/README.md")),
        ("toolwright.toml", include_str!("../../templates/project/toolwright.toml")),
        ("prompts/core.md", include_str!("../../templates/project/core.md")),
        ("prompts/voice-behavior.md", include_str!("../../templates/project/voice-behavior.md")),
        (".gitignore", include_str!("../../templates/project/gitignore")),
        (".gitattributes", include_str!("../../templates/project/gitattributes")),
    ];
    let mut files: Vec<Template> =
        fixed.into_iter().map(|(path, text)| Template::new(path, text, &values)).collect();
    for (tool, category) in [
        ("find-note", Category::Retrieval),
        ("send-note", Category::Action),
        ("count-words", Category::Utility),
    ] {
        files.extend(tool_files(&format!("tools/{tool}/"), tool, category, Mode::ALL));
    }
    files
}
