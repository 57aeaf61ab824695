//! `implementation: { type: http, … }`: read and checked, so that a call can only fail by what it is given or meets.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Report, fields, shown};
use crate::http::{HttpTool, METHODS, Template, parameter_names, strings};
use toolwright_contract::suggest::{did_you_mean, list};

const FIELDS: &[&str] = &["type", "method", "url", "query", "headers", "body", "response"];

/// What the tool sends; nothing if something is wrong with it, which has been reported then.
pub(super) fn read(
    report: &mut Report<'_>,
    how: &Map<String, Value>,
    parameters: Option<&Value>,
) -> Option<HttpTool> {
    let before = report.count();
    fields::unknown(report, how, "implementation.", FIELDS);
    let method = method(report, how.get("method"));
    let (origin, path) = url(report, how)?;
    let tool = HttpTool {
        method: method?,
        origin,
        path: Template::parse(&path),
        query: how.get("query").map(|query| pairs(report, "implementation.query", query)),
        headers: how
            .get("headers")
            .map(|headers| pairs(report, "implementation.headers", headers))
            .unwrap_or_default(),
        body: how.get("body").cloned(),
        data: how.get("response").and_then(|response| data(report, response)),
    };
    if tool.body.is_some() && matches!(tool.method.as_str(), "GET" | "HEAD") {
        report.problem(format!("a {} request has no body", tool.method), "leave `body` out, or use POST");
    }
    check_names(report, &tool, parameters);
    (report.count() == before).then_some(tool)
}

fn method(report: &mut Report<'_>, value: Option<&Value>) -> Option<String> {
    match value {
        None => Some("GET".to_owned()),
        Some(value) => {
            let known = |word: &str| METHODS.contains(&word).then(|| word.to_owned());
            fields::word(report, "implementation.method", value, METHODS, known)
        }
    }
}

/// The address in two parts, of which only the second may have places for arguments.
fn url(report: &mut Report<'_>, how: &Map<String, Value>) -> Option<(String, String)> {
    let help = "write where the request goes, such as https://api.example.com/v1/items/{id}";
    let Some(value) = how.get("url") else {
        report.problem("`implementation.url` is missing", help);
        return None;
    };
    let text = fields::text(report, "implementation.url", value)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        report.problem("`implementation.url` must begin with https:// or http://", help);
        return None;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    if authority.is_empty()
        || authority.contains(['{', '}', '$', '@'])
        || authority.contains(char::is_whitespace)
    {
        let message = format!("`implementation.url` has the host `{}`, which is not fixed", shown(authority));
        report.problem(
            message,
            "an argument may not decide where a request goes, and a secret belongs in a header",
        );
        return None;
    }
    let (origin, path) = text.split_at(text.len() - rest.len() + end);
    if path.contains('#') {
        report.problem("`implementation.url` has a fragment", "leave out what follows the `#`");
    }
    if Template::parse(path).variables().next().is_some() {
        report
            .problem("`implementation.url` has a variable in it", "a secret belongs in `headers` or `query`");
    }
    Some((origin.to_owned(), path.to_owned()))
}

fn pairs(report: &mut Report<'_>, name: &str, value: &Value) -> BTreeMap<String, Template> {
    let Some(members) = value.as_object() else {
        fields::wrong_type::<()>(report, name, value, "a table of names and texts");
        return BTreeMap::new();
    };
    let mut pairs = BTreeMap::new();
    for (key, value) in members {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                fields::wrong_type::<()>(report, &format!("{name}.{}", shown(key)), value, "a string");
                continue;
            }
        };
        pairs.insert(key.clone(), Template::parse(&text));
    }
    pairs
}

fn data(report: &mut Report<'_>, value: &Value) -> Option<String> {
    let Some(members) = value.as_object() else {
        return fields::wrong_type(report, "implementation.response", value, "a table with `data`");
    };
    fields::unknown(report, members, "implementation.response.", &["data"]);
    let pointer = members.get("data")?;
    match pointer.as_str() {
        Some(text) if text.is_empty() || text.starts_with('/') => Some(text.to_owned()),
        _ => {
            let help = "write where the data lies in the answer, such as /results/0";
            report.problem("`implementation.response.data` must be a JSON pointer", help);
            None
        }
    }
}

/// Every place is for a parameter that exists; those of the path are always there.
fn check_names(report: &mut Report<'_>, tool: &HttpTool, parameters: Option<&Value>) {
    // What is wrong with the parameters has been reported.
    let Some(schema) = parameters else { return };
    let known = parameter_names(schema);
    for name in tool.placed() {
        if !known.contains(&name.as_str()) {
            let help = if known.is_empty() {
                "the tool has no parameters".to_owned()
            } else {
                did_you_mean(&name, &known)
            };
            report.problem(format!("`implementation` uses `{{{name}}}`, which is no parameter"), help);
        }
    }
    let always = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let default = schema.pointer(&format!("/properties/{name}/default"));
        required.filter_map(Value::as_str).any(|other| other == name) || default.is_some()
    };
    for name in tool.path.arguments().filter(|name| known.contains(name) && !always(name)) {
        let message = format!("`implementation.url` needs `{{{name}}}`, which a call may leave out");
        report.problem(message, "make it required, give it a default, or move it to `query`");
    }
    if let Some(body) = &tool.body {
        let mut secret = false;
        strings(body, &mut |text| secret |= Template::parse(text).variables().next().is_some());
        if secret {
            report.problem(
                "`implementation.body` has a variable in it",
                "a secret belongs in `headers` or `query`",
            );
        }
    }
}

/// What a file of version 1 says of such a tool.
pub(super) fn refuse(report: &mut Report<'_>, kinds: &[&str]) {
    let help = format!("write `version: 2` at the top of the file, or use one of {}", list(kinds));
    report.problem("HTTP tools not yet supported (coming in v2)", help);
}
