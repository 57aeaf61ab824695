//! `parameters` of a declared tool: any JSON Schema that can be used.

use serde_json::{Map, Value};

use super::{Report, fields, shown};
use toolwright_schema::pointer::Part;
use toolwright_schema::{Validator, is_supported_pattern, lint};

/// Any JSON Schema that can be used, of whatever draft; the strict rules are for the tools directory.
pub(super) fn parameters<'v>(report: &mut Report<'_>, members: &'v Map<String, Value>) -> Option<&'v Value> {
    let help = "a tool without arguments has `{ \"type\": \"object\", \"properties\": {} }`";
    let schema = fields::required(report, members, "parameters", help)?;
    let Some(keywords) = schema.as_object() else {
        return fields::wrong_type(report, "parameters", schema, "a JSON Schema");
    };
    if keywords.get("type").is_none_or(|kind| kind != "object") {
        report.problem("`parameters.type` must be `object`", help);
        return None;
    }
    let broken = match Validator::compile(schema) {
        Ok(_) => broken_pattern(schema),
        Err(error) => Some(error.to_string()),
    };
    if let Some(broken) = broken {
        let message = format!("`parameters` is not a JSON Schema: {}", shown(&broken));
        report.problem(message, "mend the schema at the place that is named");
        return None;
    }
    Some(schema)
}

/// The validator takes a pattern that it cannot build to match nothing, so that no call would ever be right.
/// What the linter does not mind can be built; real tools write more than it allows.
fn broken_pattern(schema: &Value) -> Option<String> {
    lint(schema).into_iter().find_map(|problem| {
        if !matches!(problem.code, "schema-bad-pattern" | "schema-pattern-too-costly") {
            return None;
        }
        let at = || schema.pointer(&problem.pointer).and_then(Value::as_str).map(str::to_owned);
        let key = || problem.pointer.rsplit('/').next().map(|key| key.replace("~1", "/").replace("~0", "~"));
        let pattern = if problem.part == Part::Key { key() } else { at() };
        let builds = pattern.is_some_and(|pattern| is_supported_pattern(&pattern));
        (!builds).then(|| format!("{} at `{}`", problem.message, problem.pointer))
    })
}
