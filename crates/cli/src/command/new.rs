//! `toolwright new`: a tool directory that builds at once, ready to be edited.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_contract::{Category, Mode};
use toolwright_registry::source::is_kebab;

use super::template::{Template, write_dir};
use crate::args::{self, Common};
use crate::config::Config;
use crate::output::{self, Failure};

/// The five template files of a category.
macro_rules! texts {
    ($category:literal) => {
        [
            include_str!(concat!("../../templates/", $category, "/schema.json")),
            include_str!(concat!("../../templates/", $category, "/doc_summary.md")),
            include_str!(concat!("../../templates/", $category, "/doc.md")),
            include_str!(concat!("../../templates/", $category, "/handler.js")),
            include_str!(concat!("../../templates/", $category, "/tests/works.json")),
        ]
    };
}

pub fn run(common: &Common, args: &args::New) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let name = kebab(&args.name)?;
    let dir = config.tools.join(&name);
    let already = dir.symlink_metadata().is_ok();
    if already {
        return Err(Failure::new(format!("{} is there already", dir.display()), "choose another name").into());
    }
    let modes = if args.mode.is_empty() { Mode::ALL.to_vec() } else { args.mode.clone() };
    std::fs::create_dir_all(&config.tools)
        .and_then(|()| write_dir(&dir, &tool_files("", &name, args.category, &modes)))
        .map_err(|error| {
            Failure::new(
                format!("cannot write {}: {error}", dir.display()),
                "check the directory's permissions",
            )
        })?;
    output::message(format_args!("\x1b[1;32mcreated\x1b[0m {}", dir.display()));
    let todo = [
        ("schema.json", "what it takes, and what it may do"),
        ("doc_summary.md", "the line or two that every prompt carries"),
        ("doc.md", "when and how to call it; the examples are checked"),
        ("handler.js", "what it does"),
        ("tests/works.json", "a call and the envelope it must give"),
    ];
    for (file, what) in todo {
        output::message(format_args!("  edit {file:<17} {what}"));
    }
    output::message("then run `toolwright build`");
    Ok(ExitCode::SUCCESS)
}

fn kebab(name: &str) -> Result<String, Failure> {
    let kebab = name.replace('_', "-");
    if is_kebab(&kebab) {
        return Ok(kebab);
    }
    Err(Failure::usage(
        format!("`{name}` is not a tool's name"),
        "use kebab-case: lower-case letters, digits and `-`, beginning with a letter, such as `weather-lookup`",
    ))
}

/// The files of a new tool, below `prefix`.
pub fn tool_files(prefix: &str, name: &str, category: Category, modes: &[Mode]) -> Vec<Template> {
    let tool_id = name.replace('-', "_");
    let modes: Vec<String> = modes.iter().map(|mode| format!("\"{mode}\"")).collect();
    let modes = modes.join(", ");
    let title = name.replace('-', " ");
    let values = [("TOOL_ID", tool_id.as_str()), ("NAME", name), ("TITLE", &title), ("MODES", &modes)];
    let texts: [&str; 5] = match category {
        Category::Retrieval => texts!("retrieval"),
        Category::Action => texts!("action"),
        Category::Utility => texts!("utility"),
    };
    let names = ["schema.json", "doc_summary.md", "doc.md", "handler.js", "tests/works.json"];
    let file = |(name, text): (&str, &str)| Template::new(format!("{prefix}{name}"), text, &values);
    names.into_iter().zip(texts).map(file).collect()
}
