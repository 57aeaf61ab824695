//! Resolves an import's specifier: a file of the tool, the module that Toolwright provides, or something that a handler
//! cannot import.

use super::error;
use super::module::Value;
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::excerpt;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    ErrorTypes,
    /// A path inside the tool's directory.
    Sibling(String),
    /// Not resolved, or reported already: its exports are unknown.
    Unknown,
}

/// The exports of Toolwright's `error-types.js`.
pub(super) static ERROR_TYPES: [(&str, Value); 3] = [
    ("ToolError", Value::NotFunction { what: "a class", span: None }),
    ("ErrorType", Value::NotFunction { what: "an object", span: None }),
    ("IntentType", Value::NotFunction { what: "an object", span: None }),
];

const ALLOWED: &str = "a handler may import files of its own directory ('./lib.js') and \
    '../_core/error-types.js'; everything else is in `context` (http.fetch, kb, calendar, messaging, callTool, …)";

/// `importer` is the path of the importing module, `span` that of the specifier in it.
pub(super) fn resolve(
    importer: &str,
    specifier: &str,
    span: &Range<usize>,
) -> Result<Target, Box<DiagnosticDraft>> {
    let reject = |code, message, help: String| {
        Err(error(code, importer, span.clone(), message).with_help(help).into())
    };
    let shown = excerpt(specifier);
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        let message = format!("`{shown}` cannot be imported by a handler");
        return reject("handler-import-forbidden", message, package_help(specifier));
    }
    let (levels_up, path) = normalise(importer, specifier);
    if levels_up == 1 && matches!(path.as_str(), "_core/error-types.js" | "error-types.js") {
        return Ok(Target::ErrorTypes);
    }
    if levels_up > 0 {
        let message = format!("`{shown}` is outside of the tool's own directory");
        let help = match specifier.ends_with("error-types.js") {
            true => "the error types are at '../_core/error-types.js'",
            false => {
                "copy the file into the tool's directory, or call the other tool with `context.callTool`"
            }
        };
        return reject("handler-import-outside", message, help.to_owned());
    }
    let is_plain = !specifier.contains(|c: char| matches!(c, '\\' | '%' | '?' | '#' | ':') || c.is_control());
    let is_script = [".js", ".mjs"]
        .iter()
        .any(|ending| path.strip_suffix(ending).is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/')));
    if !is_plain || !is_script {
        let message = format!("`{shown}` is not a plain path to a `.js` or `.mjs` file");
        return reject("handler-import-forbidden", message, script_help(specifier));
    }
    Ok(Target::Sibling(path))
}

/// How many directories up a path leads, and the rest of it.
fn normalise(importer: &str, specifier: &str) -> (usize, String) {
    let directory = importer.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut levels_up = 0;
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(specifier.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    levels_up += 1;
                }
            }
            name => parts.push(name),
        }
    }
    (levels_up, parts.join("/"))
}

fn script_help(specifier: &str) -> String {
    if specifier.ends_with(".json") {
        "JSON cannot be imported: write it as a module, `export default { … }`, in a `.js` file".to_owned()
    } else if specifier.ends_with(".ts") || specifier.ends_with(".cjs") {
        "handlers are plain ES modules: compile it to a `.js` file first".to_owned()
    } else {
        format!("write the whole file name, e.g. './{}.js'", stem(specifier))
    }
}

fn stem(specifier: &str) -> &str {
    let name = specifier.trim_matches(['.', '/']);
    let plain = name.split(['?', '#', '.', '%', '\\', ':']).next().unwrap_or(name);
    if plain.is_empty() || plain.len() > 40 { "lib" } else { plain }
}

/// The alternative to a package or built-in module.
fn package_help(specifier: &str) -> String {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let root = bare.split('/').next().unwrap_or(bare);
    match root {
        "fs" | "fs-extra" => {
            "a handler has no file system; data comes from `args`, `context.kb` or `context.http.fetch`"
                .to_owned()
        }
        "axios" | "node-fetch" | "undici" | "got" | "http" | "https" | "http2" | "request" | "superagent"
        | "cross-fetch" | "ky" => "use `context.http.fetch` instead".to_owned(),
        "crypto" | "uuid" => "use the global `crypto.randomUUID()` instead".to_owned(),
        "url" => "`URL` and `URLSearchParams` are globals; no import is needed".to_owned(),
        _ if (bare.ends_with(".js") || bare.ends_with(".mjs")) && !specifier.contains([':', '\\']) => {
            format!(
                "a file of the tool's own directory begins with './': './{}'",
                bare.trim_start_matches('/')
            )
        }
        _ => ALLOWED.to_owned(),
    }
}
