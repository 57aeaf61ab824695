//! Tools that are declared in configuration: a JSON, YAML or TOML file with a list of definitions.
//!
//! A definition with errors is skipped and reported; the others are used. The caller says which handlers are
//! registered: this module does not know how a call runs.

mod declared_http;
mod declared_parameters;
mod definition;
mod parse_file;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolwright_contract::suggest::did_you_mean;

use crate::compiled_tool::hex;
use crate::excerpt::excerpt;
use crate::json::write_canonical;
use crate::toolset::{Implementation, Tool};

pub(crate) use declared_parameters::check_parameters;
use definition::DefinitionErrors;

/// The largest file that is read.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The most errors that are reported for one file.
const MAX_ERRORS: usize = 100;

/// An error in a declared file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// About the whole file.
    #[error("{}: {message}", file.display())]
    File { file: PathBuf, message: String, help: String },
    /// About one tool: its name, or `#` and its position if it has no valid name.
    #[error("{}: tool `{tool}`: {message}", file.display())]
    Tool { file: PathBuf, tool: String, message: String, help: String },
    /// Another tool already has the name, and is used.
    #[error("{}: Tool already exists: {tool}", file.display())]
    Exists { file: PathBuf, tool: String },
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &str {
        match self {
            Self::File { help, .. } | Self::Tool { help, .. } => help,
            Self::Exists { .. } => "rename one of the two, or remove it",
        }
    }
}

/// Reads a file of declared tools, as [`read`] does its text.
pub fn load(path: &Path, is_registered: &dyn Fn(&str) -> bool) -> (Vec<Tool>, Vec<Error>) {
    match read_bounded(path) {
        Ok(text) => read(path, &text, is_registered),
        Err((message, help)) => (Vec::new(), vec![Error::File { file: path.to_owned(), message, help }]),
    }
}

/// The valid tools of a declared file, in its order, and the errors of the others.
/// The extension of `path` decides the format.
pub fn read(path: &Path, text: &str, is_registered: &dyn Fn(&str) -> bool) -> (Vec<Tool>, Vec<Error>) {
    let mut tools = Vec::new();
    let mut errors = Vec::new();
    let mut omitted = 0;
    match parse_file::parse(path, text).and_then(|content| header(content, path, &mut errors)) {
        Ok((version, definitions)) => {
            let rules = definition::Rules { is_registered, version };
            for (index, value) in definitions.iter().enumerate() {
                match definition::read(index, value, &rules) {
                    Ok(tool) => tools.push(tool),
                    Err(rejection) if errors.len() < MAX_ERRORS => {
                        errors.extend(rejected(path, index, rejection));
                    }
                    Err(rejection) => omitted += rejection.diagnostics.len(),
                }
            }
        }
        Err((message, help)) => errors.push(Error::File { file: path.to_owned(), message, help }),
    }
    omitted += errors.len().saturating_sub(MAX_ERRORS);
    if omitted > 0 {
        errors.truncate(MAX_ERRORS);
        let message = format!("{omitted} more problems are not shown");
        errors.push(Error::File { file: path.to_owned(), message, help: "fix the others first".to_owned() });
    }
    (tools, errors)
}

/// The errors of one definition.
fn rejected(file: &Path, index: usize, rejection: DefinitionErrors) -> impl Iterator<Item = Error> {
    let DefinitionErrors { name, diagnostics } = rejection;
    let tool = name.unwrap_or_else(|| format!("#{}", index + 1));
    diagnostics.into_iter().map(move |draft| Error::Tool {
        file: file.to_owned(),
        tool: tool.clone(),
        message: draft.message,
        help: draft.help.unwrap_or_else(|| format!("see `toolwright explain {}`", draft.code)),
    })
}

/// Whether a field says what the tool is. Of an imported tool the configuration cannot override it.
pub fn is_definition_field(name: &str) -> bool {
    matches!(name, "name" | "type" | "parameters" | "implementation" | "handler")
}

/// Over the canonical JSON of the artifact's digest and every declared tool, in order: 64 hexadecimal digits.
pub(crate) fn digest(artifact_digest: &str, tools: &[Tool]) -> String {
    let tools: Vec<Value> = tools.iter().map(content).collect();
    let mut canonical = Vec::new();
    write_canonical(&json!([artifact_digest, tools]), &mut canonical);
    hex(&Sha256::digest(&canonical))
}

fn content(tool: &Tool) -> Value {
    let Tool { spec, summary, implementation } = tool;
    let implementation = match implementation {
        Implementation::Mock(response) => json!({ "mock": response }),
        Implementation::Native(handler) => json!({ "native": handler }),
        Implementation::Http(http) => json!({ "http": http }),
        Implementation::Module(module) => json!({ "module": module.path, "sha256": module.sha256 }),
    };
    json!({ "spec": spec, "summary": summary, "implementation": implementation })
}

/// The version of a file, which decides what its tools can use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    First,
    /// Allows `http` tools.
    Second,
}

/// The version and the definitions of a file. Unknown fields are reported and skipped.
fn header(
    content: Value,
    file: &Path,
    errors: &mut Vec<Error>,
) -> Result<(Version, Vec<Value>), parse_file::ParseError> {
    let refuse = |message: &str, help: &str| Err((message.to_owned(), help.to_owned()));
    let Value::Object(mut members) = content else {
        return refuse("the file must be an object with `tools`", "write `tools:` and a list of definitions");
    };
    let version = match members.get("version").map(Value::as_u64) {
        None | Some(Some(1)) => Version::First,
        Some(Some(2)) => Version::Second,
        Some(_) => {
            return refuse("`version` of the file must be 1 or 2", "leave it out, or write the number 1");
        }
    };
    errors.extend(unknown_fields(&members, file));
    match members.shift_remove("tools") {
        Some(Value::Array(definitions)) => Ok((version, definitions)),
        Some(_) => refuse("`tools` must be an array", "put the definitions in an array, even a single one"),
        None => refuse("`tools` is missing", "write `tools:` and a list of definitions"),
    }
}

fn unknown_fields(members: &Map<String, Value>, file: &Path) -> Vec<Error> {
    let known = ["tools", "version"];
    let unknown = members.keys().filter(|name| !known.contains(&name.as_str()));
    let error = |name: &String| Error::File {
        file: file.to_owned(),
        message: format!("unknown field `{}`", excerpt(name)),
        help: did_you_mean(name, &known),
    };
    unknown.map(error).collect()
}

fn read_bounded(path: &Path) -> Result<String, parse_file::ParseError> {
    let failed = |error: io::Error| {
        (format!("the file cannot be read: {error}"), "correct the path in `[tools] declared`".to_owned())
    };
    // Checked before opening: opening a named pipe would block until a writer opens it.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("not a regular file")));
    }
    if metadata.len() > MAX_BYTES as u64 {
        return Err(parse_file::too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        (format!("the file is not UTF-8 at byte {at}"), "save the file as UTF-8".to_owned())
    })
}

#[cfg(test)]
mod declared_tests;
#[cfg(test)]
mod hostile_tests;
