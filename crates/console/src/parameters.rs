//! A JSON Schema as a table that people read.

use serde_json::Value;

use crate::format::shorten;
use crate::schema_form::Schema;

/// Deeper members are in the raw schema only.
const MAX_DEPTH: usize = 6;
const MAX_ROWS: usize = 500;
/// The most characters of a description. The raw schema has all of it.
pub(crate) const MAX_DESCRIPTION: usize = 2000;

/// One member of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterRow {
    /// `filters.tags[]`
    pub path: String,
    pub depth: usize,
    pub kind: String,
    pub is_required: bool,
    pub description: String,
    pub constraints: String,
}

/// The rows of a tool's parameters.
pub fn parameter_rows(schema: &Value) -> Vec<ParameterRow> {
    let mut rows = Vec::new();
    members(Schema::new(schema).resolved(), "", 0, &mut rows);
    rows
}

fn members(schema: Schema<'_>, prefix: &str, depth: usize, rows: &mut Vec<ParameterRow>) {
    if depth > MAX_DEPTH {
        return;
    }
    for (name, node) in schema.properties() {
        if rows.len() >= MAX_ROWS {
            return;
        }
        let member = schema.with_node(node);
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        rows.push(ParameterRow {
            depth,
            kind: kind(member),
            is_required: schema.is_required(name),
            description: shorten(member.text("description"), MAX_DESCRIPTION),
            constraints: constraints(member),
            path: path.clone(),
        });
        members(member, &path, depth + 1, rows);
        if let Some(items) = member.items() {
            members(items, &format!("{path}[]"), depth + 1, rows);
        }
        for (index, one) in member.alternatives().into_iter().enumerate() {
            members(one, &format!("{path} ({})", one.title(index)), depth + 1, rows);
        }
    }
}

/// The type in words: `string`, `list of string`, `one of string, object`.
fn kind(schema: Schema<'_>) -> String {
    if !schema.values().is_empty() {
        return "choice".to_owned();
    }
    let alternatives = schema.alternatives();
    if !alternatives.is_empty() {
        let titles = alternatives.iter().enumerate().map(|(index, one)| one.title(index));
        return format!("one of {}", titles.collect::<Vec<_>>().join(", "));
    }
    match (schema.type_names().as_slice(), schema.items()) {
        (["array"], Some(items)) => format!("list of {}", kind(items)),
        ([], _) => "any".to_owned(),
        (names, _) => names.join(" or "),
    }
}

fn constraints(schema: Schema<'_>) -> String {
    let values: Vec<String> = schema.values().iter().map(ToString::to_string).collect();
    let values = if values.is_empty() { String::new() } else { format!("{}. ", values.join(", ")) };
    format!("{values}{}", schema.constraints()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_members_lists_and_references_become_rows() {
        let schema = json!({
            "type": "object", "required": ["query"], "$defs": { "tag": { "type": "string", "maxLength": 20 } },
            "properties": {
                "query": { "type": "string", "minLength": 1, "description": "What to find." },
                "filters": { "type": "object", "properties": { "tags": { "type": "array", "items": { "$ref": "#/$defs/tag" }, "maxItems": 5 } } },
                "order": { "enum": ["newest", "best"], "default": "best" }
            }
        });
        let rows = parameter_rows(&schema);
        let brief: Vec<_> =
            rows.iter().map(|row| (row.path.as_str(), row.kind.as_str(), row.constraints.as_str())).collect();
        assert_eq!(
            brief,
            [
                ("query", "string", "At least 1 characters."),
                ("filters", "object", ""),
                ("filters.tags", "list of string", "At most 5 items."),
                ("order", "choice", "\"newest\", \"best\". Default \"best\"."),
            ]
        );
        assert!(rows[0].is_required && rows[2].depth == 1);
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
            "$ref": "#/$defs/node" });
        assert_eq!(parameter_rows(&schema).len(), MAX_DEPTH + 1);
    }
}
