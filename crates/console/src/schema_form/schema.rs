//! The parts of a JSON Schema that a form uses: references, types, the words for constraints.

use serde_json::{Map, Value};

/// References that follow each other; more are not followed.
const MAX_REFERENCES: usize = 16;

/// A schema, with the document that its references lead into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    pub root: &'a Value,
    pub node: &'a Value,
}

/// How a value of a schema is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    String,
    Number,
    Integer,
    Boolean,
    /// One of the values of `enum` or `const`.
    Enum,
    Object,
    List,
    /// One of the schemas of `oneOf` or `anyOf`.
    Alternatives,
    /// Anything else.
    Json,
}

impl<'a> Schema<'a> {
    pub fn new(root: &'a Value) -> Self {
        Self { root, node: root }
    }

    /// The schema at the end of its references.
    pub fn resolved(self) -> Self {
        let mut node = self.node;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = node.get("$ref").and_then(Value::as_str) else { break };
            let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))
            else {
                break;
            };
            node = target;
        }
        Self { node, ..self }
    }

    pub fn with_node(self, node: &'a Value) -> Self {
        Self { node, ..self }.resolved()
    }

    pub fn shape(self) -> Shape {
        let has = |name| self.node.get(name).is_some();
        if has("enum") || has("const") {
            return Shape::Enum;
        }
        if ["$ref", "allOf", "if", "not", "patternProperties", "prefixItems"].iter().any(|name| has(name)) {
            return Shape::Json;
        }
        match self.type_names().as_slice() {
            ["string"] => Shape::String,
            ["number"] => Shape::Number,
            ["integer"] => Shape::Integer,
            ["boolean"] => Shape::Boolean,
            ["array"] if self.items().is_some() => Shape::List,
            [] | ["object"] if !self.alternatives().is_empty() && !has("properties") => Shape::Alternatives,
            ["object"] if has("properties") && self.alternatives().is_empty() => Shape::Object,
            [] if !self.alternatives().is_empty() => Shape::Alternatives,
            _ => Shape::Json,
        }
    }

    /// The types it admits, besides null.
    pub fn type_names(self) -> Vec<&'a str> {
        let types = match self.node.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        types.into_iter().filter(|name| *name != "null").collect()
    }

    pub fn properties(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.node.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
    }

    pub fn is_required(self, name: &str) -> bool {
        let required = self.node.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|own| own == name))
    }

    pub fn items(self) -> Option<Self> {
        self.node.get("items").filter(|items| items.is_object()).map(|items| self.with_node(items))
    }

    pub fn alternatives(self) -> Vec<Self> {
        let all = self.node.get("oneOf").or_else(|| self.node.get("anyOf")).and_then(Value::as_array);
        all.into_iter().flatten().map(|one| self.with_node(one)).collect()
    }

    /// The values of `enum` or `const`.
    pub fn values(self) -> Vec<&'a Value> {
        match (self.node.get("const"), self.node.get("enum")) {
            (Some(only), _) => vec![only],
            (None, Some(Value::Array(all))) => all.iter().collect(),
            _ => Vec::new(),
        }
    }

    pub fn text(self, name: &str) -> &'a str {
        self.node.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn number(self, name: &str) -> Option<String> {
        self.node.get(name).filter(|value| value.is_number()).map(Value::to_string)
    }

    pub fn default(self) -> Option<&'a Value> {
        self.node.get("default")
    }

    /// Whether a value can be of this schema, as far as its type, fixed values and required members tell.
    pub fn may_be(self, value: &Value) -> bool {
        if !self.values().is_empty() {
            return self.values().contains(&value);
        }
        let is_type = |name: &&str| match *name {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        };
        let types = self.type_names();
        let required = self.node.get("required").and_then(Value::as_array).into_iter().flatten();
        let has_member = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
        (types.is_empty() || types.iter().any(is_type))
            && required.into_iter().all(has_member)
            && self.properties().all(|(name, member)| {
                value.get(name).is_none_or(|own| {
                    let fixed = self.with_node(member).values();
                    fixed.is_empty() || fixed.contains(&own)
                })
            })
    }

    /// A name of this alternative, for people.
    pub fn title(self, index: usize) -> String {
        let title = self.text("title");
        if !title.is_empty() {
            return title.to_owned();
        }
        let fixed = self.properties().find_map(|(_, member)| {
            let value = self.with_node(member).node.get("const")?;
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
        let types = self.type_names();
        match (fixed, types.as_slice()) {
            (Some(fixed), _) => fixed,
            (None, [one]) => (*one).to_owned(),
            _ => format!("form {}", index + 1),
        }
    }

    /// The constraints in words, as sentences.
    pub fn constraints(self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let length = |noun: &str, least: &str, most: &str| match (self.number(least), self.number(most)) {
            (Some(least), Some(most)) if least == most => Some(format!("Exactly {least} {noun}.")),
            (Some(least), Some(most)) => Some(format!("{least} to {most} {noun}.")),
            (Some(least), None) => Some(format!("At least {least} {noun}.")),
            (None, Some(most)) => Some(format!("At most {most} {noun}.")),
            (None, None) => None,
        };
        parts.extend(length("characters", "minLength", "maxLength"));
        parts.extend(length("items", "minItems", "maxItems"));
        parts.extend(match (self.number("minimum"), self.number("maximum")) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}.")),
            (Some(least), None) => Some(format!("{least} or more.")),
            (None, Some(most)) => Some(format!("{most} or less.")),
            (None, None) => None,
        });
        parts.extend(self.number("exclusiveMinimum").map(|least| format!("More than {least}.")));
        parts.extend(self.number("exclusiveMaximum").map(|most| format!("Less than {most}.")));
        parts.extend(self.number("multipleOf").map(|step| format!("A multiple of {step}.")));
        parts.extend(format_example(self.text("format")));
        let pattern = self.text("pattern");
        parts.extend((!pattern.is_empty()).then(|| format!("Matches {pattern}.")));
        parts.extend(
            (self.node.get("uniqueItems") == Some(&Value::Bool(true))).then(|| "No item twice.".to_owned()),
        );
        parts.extend(self.default().map(|value| format!("Default {value}.")));
        parts.join(" ")
    }
}

fn format_example(format: &str) -> Option<String> {
    let example = match format {
        "" => return None,
        "date-time" => "2026-01-31T09:00:00Z",
        "date" => "2026-01-31",
        "time" => "09:00:00Z",
        "duration" => "PT30M",
        "email" => "name@example.com",
        "uri" | "url" => "https://example.com/",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        other => return Some(format!("Format {other}.")),
    };
    Some(format!("Such as {example}."))
}
