//! The files that a project has for other programs: `toolwright.d.ts` and `jsconfig.json`, from which editors learn
//! what handlers can use, and `.gitignore`.

use std::fs;

use anyhow::Result;

use super::template::{Template, cannot_write};
use crate::config::Config;
use crate::output;

const TYPES_FILE: &str = "toolwright.d.ts";
const CONFIG_FILE: &str = "jsconfig.json";
const TYPES: &str = include_str!("../../templates/project/toolwright.d.ts");

/// The files of a project whose tools are in `tools`, a path relative to the project.
pub fn files(tools: &str) -> [Template; 3] {
    let values = [("TOOLS", tools)];
    [
        Template::new(TYPES_FILE, TYPES, &[]),
        Template::new(CONFIG_FILE, include_str!("../../templates/project/jsconfig.json"), &values),
        Template::new(".gitignore", include_str!("../../templates/project/gitignore"), &values),
    ]
}

/// Writes the files that a project lacks, and replaces the types of another version. Does nothing if the tools are
/// outside the project's directory.
pub fn update(config: &Config) -> Result<()> {
    let project = config.beside("");
    let Some(tools) = config.tools.strip_prefix(&project).ok().and_then(|tools| tools.to_str()) else {
        return Ok(());
    };
    if tools.is_empty() || config.tools.is_absolute() != project.is_absolute() {
        return Ok(());
    }
    for file in files(tools) {
        let path = config.beside(&file.path);
        let existing = fs::read_to_string(&path);
        let is_outdated = file.path == TYPES_FILE && existing.as_ref().is_ok_and(|text| *text != file.text);
        if path.symlink_metadata().is_err() || is_outdated {
            fs::write(&path, &file.text).map_err(|error| cannot_write(&path, &error))?;
            output::success(if is_outdated { "updated" } else { "created" }, path.display());
        }
    }
    Ok(())
}
