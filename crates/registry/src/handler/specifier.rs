//! What an import's specifier stands for: a file of the tool, the module that Toolwright
//! provides, or something that a handler may not have.

use crate::problem::Problem;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    ErrorTypes,
    /// A path inside the tool's directory.
    Sibling(String),
    /// Already reported: nothing is known of it.
    Refused,
}

/// What Toolwright's `error-types.js` exports, and what kind of value each is.
pub(super) const ERROR_TYPES: [(&str, &str); 3] =
    [("ToolError", "a class"), ("ErrorType", "an object"), ("IntentType", "an object")];

const ALLOWED: &str = "a handler may import files of its own directory ('./lib.js') and \
    '../_core/error-types.js'; for all else it has `context` (http.fetch, kb, calendar, messaging, callTool, …)";

/// `importer` is the path of the module that imports, `span` the specifier's place in it.
pub(super) fn resolve(importer: &str, specifier: &str, span: &Range<usize>) -> Result<Target, Problem> {
    let is_relative = specifier.starts_with("./") || specifier.starts_with("../");
    if !is_relative {
        return Err(forbidden(specifier, span));
    }
    let path = normalise(importer, specifier);
    if path.levels_up == 1 && matches!(path.rest.as_str(), "_core/error-types.js" | "error-types.js") {
        return Ok(Target::ErrorTypes);
    }
    if path.levels_up > 0 {
        return Err(outside(specifier, span));
    }
    let is_plain = !specifier.contains(|c: char| matches!(c, '\\' | '%' | '?' | '#' | ':') || c.is_control());
    let is_script = [".js", ".mjs"].iter().any(|ending| {
        path.rest.strip_suffix(ending).is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/'))
    });
    if !is_plain || !is_script {
        return Err(not_a_script(specifier, span));
    }
    Ok(Target::Sibling(path.rest))
}

struct Path {
    levels_up: usize,
    rest: String,
}

fn normalise(importer: &str, specifier: &str) -> Path {
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
    Path { levels_up, rest: parts.join("/") }
}

fn outside(specifier: &str, span: &Range<usize>) -> Problem {
    let message = format!("`{}` is outside of the tool's own directory", shown(specifier));
    let help = match specifier.ends_with("error-types.js") {
        true => "the error types are at '../_core/error-types.js'",
        false => {
            "copy what is needed into the tool's directory, or call the other tool with `context.callTool`"
        }
    };
    Problem::error("handler-import-outside", span.clone(), message).with_help(help)
}

fn not_a_script(specifier: &str, span: &Range<usize>) -> Problem {
    let message = format!("`{}` is not a plain path to a `.js` or `.mjs` file", shown(specifier));
    let help = if specifier.ends_with(".json") {
        "JSON cannot be imported: write it as a module, `export default { … }`, in a `.js` file".to_owned()
    } else if specifier.ends_with(".ts") || specifier.ends_with(".cjs") {
        "handlers are plain ES modules: compile it to a `.js` file first".to_owned()
    } else {
        format!("write the whole file name, e.g. './{}.js'", stem(specifier))
    };
    Problem::error("handler-import-forbidden", span.clone(), message).with_help(help)
}

fn stem(specifier: &str) -> &str {
    let name = specifier.trim_matches(['.', '/']);
    let plain = name.split(['?', '#', '.', '%', '\\', ':']).next().unwrap_or(name);
    if plain.is_empty() || plain.len() > 40 { "lib" } else { plain }
}

fn forbidden(specifier: &str, span: &Range<usize>) -> Problem {
    let message = format!("`{}` cannot be imported by a handler", shown(specifier));
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let root = bare.split('/').next().unwrap_or(bare);
    let help = match root {
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
    };
    Problem::error("handler-import-forbidden", span.clone(), message).with_help(help)
}

/// Specifiers come from the file: long ones are cut in messages.
fn shown(specifier: &str) -> String {
    match specifier.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &specifier[..at]),
        None => specifier.to_owned(),
    }
}
