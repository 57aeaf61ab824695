//! `implementation: { type: http, … }`: checked when it is read, so that a call fails only for its arguments or for
//! the server's response.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolwright_contract::suggest::did_you_mean;
use toolwright_schema::pointer::child_pointer;

use crate::excerpt::{excerpt, value_excerpt};
use crate::fields::FieldCheck;
use crate::http_tool::{HttpTool, METHODS, Template, visit_strings};

const FIELDS: &[&str] = &["type", "method", "url", "query", "headers", "body", "response"];
const SECRET_HELP: &str = "a secret belongs in `headers` or `query`";

/// The request of the tool; `None` if it has errors.
pub(super) fn read(check: &mut FieldCheck<'_>, members: &Map<String, Value>) -> Option<HttpTool> {
    let before = check.diagnostics.len();
    check.unknown_fields(members, "/implementation", FIELDS);
    let method = members.get("method").map(|method| {
        check.one_of(method, "/implementation/method", METHODS);
        method.as_str().unwrap_or_default().to_owned()
    });
    let (origin, path) = url(check, members)?;
    let mut templates = |name: &str| members.get(name).map(|value| templates(check, name, value));
    let (query, headers) = (templates("query"), templates("headers"));
    let tool = HttpTool {
        method: method.unwrap_or_else(|| "GET".to_owned()),
        origin,
        path: Template::parse(&path),
        query,
        headers: headers.unwrap_or_default(),
        body: members.get("body").cloned(),
        data: members.get("response").and_then(|response| data_pointer(check, response)),
    };
    if tool.body.is_some() && matches!(tool.method.as_str(), "GET" | "HEAD") {
        let message = format!("`implementation.body` is set, and a {} request has no body", tool.method);
        check.error("field-value", "/implementation/body", message).help("leave `body` out, or use POST");
    }
    check_arguments(check, &tool);
    (check.diagnostics.len() == before).then_some(tool)
}

/// Reports an error of one field of `implementation`.
fn refuse(check: &mut FieldCheck<'_>, field: &str, problem: &str, help: &str) {
    let message = format!("`implementation.{field}` {problem}");
    check.error("field-value", format!("/implementation/{field}"), message).help(help);
}

/// The URL in two parts: the origin, and the path and query. Only the second may have arguments.
fn url(check: &mut FieldCheck<'_>, members: &Map<String, Value>) -> Option<(String, String)> {
    let help = "write where the request goes, such as https://api.example.com/v1/items/{id}";
    let Some(value) = members.get("url") else {
        check.missing("/implementation", "url", help);
        return None;
    };
    let text = check.text(value, "/implementation/url")?;
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        let problem = format!("must begin with https:// or http://, got `{}`", excerpt(text));
        refuse(check, "url", &problem, help);
        return None;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let has_places = authority.contains(['{', '}', '$', '@']) || authority.contains(char::is_whitespace);
    if authority.is_empty() || has_places {
        let problem = format!("has the host `{}`, which is not fixed", excerpt(authority));
        let help = "an argument cannot choose the host, and a secret belongs in a header";
        refuse(check, "url", &problem, help);
        return None;
    }
    let (origin, path) = text.split_at(text.len() - rest.len() + end);
    if path.contains('#') {
        refuse(check, "url", "has a fragment", "remove the `#` and what follows it");
    }
    if Template::parse(path).variables().next().is_some() {
        refuse(check, "url", "has a variable in it", SECRET_HELP);
    }
    Some((origin.to_owned(), path.to_owned()))
}

fn templates(check: &mut FieldCheck<'_>, name: &str, value: &Value) -> BTreeMap<String, Template> {
    let pointer = format!("/implementation/{name}");
    let members = check.object(value, &pointer, "an object of names and texts");
    let mut templates = BTreeMap::new();
    for (key, value) in members.into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                check.wrong_type(value, &child_pointer(&pointer, key), "a string");
                continue;
            }
        };
        templates.insert(key.clone(), Template::parse(&text));
    }
    templates
}

/// `response.data`: which part of the response is the result.
fn data_pointer(check: &mut FieldCheck<'_>, value: &Value) -> Option<String> {
    let members = check.object(value, "/implementation/response", "an object with `data`")?;
    check.unknown_fields(members, "/implementation/response", &["data"]);
    let pointer = members.get("data")?;
    match pointer.as_str() {
        Some(text) if text.is_empty() || text.starts_with('/') => Some(text.to_owned()),
        _ => {
            let problem = format!("must be a JSON pointer, got {}", value_excerpt(pointer));
            let help = "write where the result is in the response, such as /results/0";
            refuse(check, "response.data", &problem, help);
            None
        }
    }
}

/// Every argument of a template is a parameter, and those of the path are in every call.
fn check_arguments(check: &mut FieldCheck<'_>, tool: &HttpTool) {
    // Errors of `parameters` are reported already.
    let Some(schema) = check.members.get("parameters").filter(|_| check.validator.is_some()) else { return };
    let known: Vec<&str> = check.parameters().map(|(name, _)| name).collect();
    for name in tool.template_arguments() {
        if !known.contains(&name.as_str()) {
            let help = match known.is_empty() {
                true => "the tool has no parameters".to_owned(),
                false => did_you_mean(&name, &known),
            };
            let message = format!("`implementation` uses `{{{name}}}`, which is not a parameter");
            check.error("field-value", "/implementation", message).help(help);
        }
    }
    let is_always_set = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let default = schema.pointer(&format!("/properties/{name}/default"));
        required.filter_map(Value::as_str).any(|other| other == name) || default.is_some()
    };
    for name in tool.path.arguments().filter(|name| known.contains(name) && !is_always_set(name)) {
        let problem = format!("needs `{{{name}}}`, which a call may leave out");
        refuse(check, "url", &problem, "make it required, give it a default, or move it to `query`");
    }
    let mut has_variable = false;
    if let Some(body) = &tool.body {
        visit_strings(body, &mut |text| has_variable |= Template::parse(text).variables().next().is_some());
    }
    if has_variable {
        refuse(check, "body", "has a variable in it", SECRET_HELP);
    }
}
