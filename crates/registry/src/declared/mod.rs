//! Tools that are declared in configuration: a JSON, YAML or TOML file with a list of definitions.
//!
//! A tool that is not sound is an error value, and the others go on. Whether a handler is registered is asked of
//! the caller: nothing here knows how a call is answered.

mod definition;
mod fields;
mod http;
mod parameters;
mod parse;
mod traits;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::compiled::hex;
use crate::hidden::is_bidi_control;
use crate::json::write_canonical;
use crate::toolset::{Implementation, Tool};
use toolwright_contract::suggest::did_you_mean;

/// The largest file that is read.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Of one file. Whoever mends these sees the rest.
const MOST_ERRORS: usize = 100;

/// Something in a declared file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// About the file as a whole.
    #[error("{}: {message}", file.display())]
    File { file: PathBuf, message: String, help: String },
    /// About one tool: its name, or `#` and its position when it has no usable name.
    #[error("{}: tool `{tool}`: {message}", file.display())]
    Tool { file: PathBuf, tool: String, message: String, help: String },
    /// The name is taken, and the tool that has it stays.
    #[error("{}: Tool already exists: {tool}", file.display())]
    Exists { file: PathBuf, tool: String },
}

impl Error {
    /// A way out, for the person at the terminal.
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

/// The sound tools of a declared file, in its order, and what is wrong with the others.
/// The extension of `path` tells the format.
pub fn read(path: &Path, text: &str, is_registered: &dyn Fn(&str) -> bool) -> (Vec<Tool>, Vec<Error>) {
    let mut report = Report { file: path, tool: None, errors: Vec::new(), left_out: 0 };
    let mut tools = Vec::new();
    match parse::parse(path, text) {
        Ok(Value::Object(members)) => {
            if let Some(version) = version(&mut report, &members)
                && let Some(list) = list(&mut report, &members)
            {
                let rules = definition::Rules { is_registered, version };
                for (index, value) in list.iter().enumerate() {
                    report.tool = Some(format!("#{}", index + 1));
                    tools.extend(definition::read(&mut report, value, &rules));
                }
            }
        }
        Ok(_) => report.problem("it is not a table with `tools`", "write `tools:` and a list of definitions"),
        Err((message, help)) => report.problem(message, help),
    }
    (tools, report.finish())
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

/// Of a file: which kinds of tools it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    First,
    /// `http` tools too.
    Second,
}

/// Collects what is wrong, and knows what it is about.
struct Report<'a> {
    file: &'a Path,
    tool: Option<String>,
    errors: Vec<Error>,
    left_out: usize,
}

impl Report<'_> {
    fn problem(&mut self, message: impl Into<String>, help: impl Into<String>) {
        if self.errors.len() >= MOST_ERRORS {
            self.left_out += 1;
            return;
        }
        let (file, message, help) = (self.file.to_owned(), message.into(), help.into());
        self.errors.push(match &self.tool {
            Some(tool) => Error::Tool { file, tool: tool.clone(), message, help },
            None => Error::File { file, message, help },
        });
    }

    /// Grows with each problem, those left out included.
    fn count(&self) -> usize {
        self.errors.len() + self.left_out
    }

    fn finish(self) -> Vec<Error> {
        let Self { file, mut errors, left_out, .. } = self;
        if left_out > 0 {
            let message = format!("{left_out} more problems are not shown");
            errors.push(Error::File {
                file: file.to_owned(),
                message,
                help: "mend the others first".to_owned(),
            });
        }
        errors
    }
}

/// A version that is not known could mean anything.
fn version(report: &mut Report<'_>, members: &Map<String, Value>) -> Option<Version> {
    match members.get("version").map(Value::as_u64) {
        None | Some(Some(1)) => Some(Version::First),
        Some(Some(2)) => Some(Version::Second),
        Some(_) => {
            report.problem("`version` of the file must be 1 or 2", "leave it out, or write the number 1");
            None
        }
    }
}

fn list<'v>(report: &mut Report<'_>, members: &'v Map<String, Value>) -> Option<&'v Vec<Value>> {
    let known = ["tools", "version"];
    for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
        report.problem(format!("unknown field `{}`", shown(name)), did_you_mean(name, &known));
    }
    match members.get("tools") {
        Some(Value::Array(list)) => Some(list),
        Some(_) => {
            report.problem("`tools` must be a list", "put the definitions in a list, even a single one");
            None
        }
        None => {
            report.problem("`tools` is missing", "write `tools:` and a list of definitions");
            None
        }
    }
}

fn read_bounded(path: &Path) -> Result<String, parse::Refusal> {
    let failed = |error: io::Error| {
        (format!("it cannot be read: {error}"), "mend the path in `[tools] declared`".to_owned())
    };
    // Asked before opening, which would wait for the other end of a named pipe.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    if metadata.len() > MAX_BYTES as u64 {
        return Err(parse::too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        (format!("it is not UTF-8 at byte {at}"), "save the file as UTF-8".to_owned())
    })
}

/// A word of the file as a message may show it: on one line, visible, and not for ever.
fn shown(word: &str) -> String {
    const LONGEST: usize = 200;
    let plain = |c: char| if c.is_control() || is_bidi_control(c) { ' ' } else { c };
    let mut out: String = word.chars().take(LONGEST).map(plain).collect();
    if word.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod declared_tests;
#[cfg(test)]
mod hostile_tests;
