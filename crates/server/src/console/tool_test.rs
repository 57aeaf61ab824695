//! `POST /tools/{toolId}/tests`: saves a call as a test file of the tool, where the server runs on a tools directory.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright_console::format::pretty;
use toolwright_console::tool_list::tool_path;
use toolwright_registry::toolset::{Implementation, Tool};

use super::tool_page::find;
use super::{form, redirect};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::rest::audience::Audience;
use crate::rest::tools::parse_mode;
use crate::route::ADMIN;

const MAX_NAME_CHARACTERS: usize = 100;

/// The directory of a tool's tests, or why calls cannot be saved.
pub(super) fn place(request: &ApiRequest<'_>, tool: &Tool) -> Result<PathBuf, String> {
    let Some(tools) = &request.app.options.tools_dir else {
        return Err("Calls can be saved as tests when the server runs on a tools directory.".to_owned());
    };
    if !request.is_admin() {
        return Err(format!("Saving a call as a test needs the role {ADMIN}."));
    }
    let Implementation::Module(module) = &tool.implementation else {
        return Err("Only tools with a directory of their own have tests.".to_owned());
    };
    if has_secrets(&tool.spec.json_schema) {
        return Err("This tool has secret arguments: write its tests by hand.".to_owned());
    }
    let directory = tools.join(Path::new(&module.path).parent().unwrap_or(Path::new("")));
    if directory.is_dir() {
        return Ok(directory.join("tests"));
    }
    Err(format!("{} is not there.", directory.display()))
}

pub(crate) async fn save(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read(&mut request).await?;
    let audience = Audience::of_console(&request)?;
    let tool = find(&audience, request.parameter)?;
    let directory = place(&request, tool).map_err(|reason| Problem::new(Kind::FORBIDDEN, reason))?;
    let name = form.required("name")?.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARACTERS {
        let detail = format!("`name` must have 1 to {MAX_NAME_CHARACTERS} characters.");
        return Err(Problem::new(Kind::UNPROCESSABLE, detail));
    }
    let value = |field: &str| -> Result<Value, Problem> {
        serde_json::from_str(form.required(field)?)
            .map_err(|error| Problem::new(Kind::BAD_REQUEST, format!("`{field}` must be JSON: {error}.")))
    };
    let mode = parse_mode(form.required("mode")?)?;
    let case = json!({ "name": name, "args": value("args")?, "mode": mode, "expect": value("expect")? });
    let slug = slug(name);
    write(&directory, &slug, &(pretty(&case) + "\n"))?;
    Ok(redirect(&format!("{}?saved={slug}", tool_path(&tool.spec.tool_id))))
}

/// The file of a test with this name in an address, if it is there: a link cannot put its own text on the page.
pub(super) fn saved(request: &ApiRequest<'_>, tool: &Tool, name: &str) -> Option<String> {
    let directory = place(request, tool).ok()?;
    let file = directory.join(format!("{name}.json"));
    (slug(name) == name && file.is_file()).then(|| file.display().to_string())
}

/// Writes a new file; an existing one stays as it is.
fn write(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Problem> {
    let file = directory.join(format!("{name}.json"));
    let create = || {
        std::fs::create_dir_all(directory)?;
        OpenOptions::new().write(true).create_new(true).open(&file)?.write_all(text.as_bytes())
    };
    match create() {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let detail = format!("There is a test {} already. Choose another name.", file.display());
            Err(Problem::new(Kind::CONFLICT, detail))
        }
        Err(error) => {
            let detail = format!("{} cannot be written: {error}.", file.display());
            Err(Problem::new(Kind::UNPROCESSABLE, detail))
        }
    }
}

/// The members of an envelope that a test compares. Times and ids differ with each call.
pub(super) fn expectation(envelope: &Value) -> Value {
    match envelope["ok"].as_bool() {
        Some(true) => json!({ "ok": true, "data": envelope["data"] }),
        _ => json!({ "ok": false, "error": { "$includes": { "type": envelope["error"]["type"] } } }),
    }
}

/// The name of a file: lower-case letters, digits and hyphens.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for character in name.to_lowercase().chars() {
        match character {
            'a'..='z' | '0'..='9' => slug.push(character),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "saved-call".to_owned() } else { slug.to_owned() }
}

fn has_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("writeOnly") == Some(&Value::Bool(true)) || members.values().any(has_secrets)
        }
        Value::Array(items) => items.iter().any(has_secrets),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_becomes_a_file_name_that_stays_in_its_directory() {
        assert_eq!(slug("A search, with defaults!"), "a-search-with-defaults");
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug("日本"), "saved-call");
    }

    #[test]
    fn a_saved_test_does_not_replace_another() {
        let dir = tempfile::tempdir().unwrap();
        let tests = dir.path().join("tests");
        write(&tests, "one", "{}").unwrap();
        assert!(write(&tests, "one", "[]").is_err());
        assert_eq!(std::fs::read_to_string(tests.join("one.json")).unwrap(), "{}");
    }

    #[test]
    fn schemas_with_secrets_are_recognised_at_any_depth() {
        assert!(has_secrets(&json!({ "properties": { "a": { "items": [{ "writeOnly": true }] } } })));
        assert!(!has_secrets(&json!({ "properties": { "writeOnly": { "type": "string" } } })));
    }
}
