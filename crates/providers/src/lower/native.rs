//! Gemini's own schema language: one type per schema, in upper case, and no object without properties.

use serde_json::{Map, Value, json};

use super::Lowering;
use super::keyword::append_notes;
use super::path::{JsonTextArgument, Step};
use crate::LossKind;
use crate::provider::object;

/// The keywords of each native type, and the formats of each JSON type.
const BY_TYPE: [(&str, &[&str]); 8] = [
    ("STRING", &["format", "minLength", "maxLength", "pattern"]),
    ("INTEGER", &["format", "minimum", "maximum"]),
    ("NUMBER", &["format", "minimum", "maximum"]),
    ("ARRAY", &["items", "minItems", "maxItems"]),
    ("OBJECT", &["properties", "required", "minProperties", "maxProperties"]),
    ("string", &["date-time"]),
    ("integer", &["int32", "int64"]),
    ("number", &["float", "double"]),
];

fn words_of_type(kind: &str) -> &'static [&'static str] {
    BY_TYPE.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, words)| words)
}

impl Lowering<'_, '_> {
    /// The root of a schema: an object, or empty if it has no properties.
    pub(super) fn native_object(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        let has_properties =
            members.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        if !has_properties {
            return Map::new();
        }
        let kept =
            |(name, _): &(String, Value)| words_of_type("OBJECT").contains(&name.as_str()) || name == "title";
        let kind = ("type".to_owned(), "OBJECT".into());
        std::iter::once(kind).chain(members.into_iter().filter(kept)).collect()
    }

    /// Converts a schema of supported keywords whose subschemas are native already.
    pub(super) fn native(&mut self, mut members: Map<String, Value>) -> Value {
        let description = take_text(&mut members, "description");
        let mut is_nullable = members.shift_remove("nullable").is_some_and(|nullable| nullable == true);
        let mut kinds = kinds(&members);
        kinds.retain(|kind| {
            is_nullable |= kind == "null";
            kind != "null"
        });
        if let Some(Value::Array(values)) = members.get_mut("enum") {
            let before = values.len();
            values.retain(|value| !value.is_null());
            is_nullable |= values.len() < before;
        }
        let mut forms = match members.shift_remove("anyOf") {
            Some(Value::Array(branches)) => branches,
            _ => {
                let last = kinds.len().saturating_sub(1);
                let single = |(at, kind): (usize, &String)| self.native_type(kind, &mut members, at == last);
                kinds.iter().enumerate().map(single).collect()
            }
        };
        let before = forms.len();
        forms.retain(|form| form.get("type").is_none_or(|kind| kind != "NULL"));
        is_nullable |= forms.len() < before;
        if forms.is_empty() {
            forms.push(if is_nullable { json!({ "type": "NULL" }) } else { self.json_text(None, None) });
        }
        union_of(forms, is_nullable, description, take_text(&mut members, "title"))
    }

    /// A schema of one type with its keywords. They are moved for the last type, and copied before.
    fn native_type(&mut self, kind: &str, members: &mut Map<String, Value>, is_last: bool) -> Value {
        let native = kind.to_ascii_uppercase();
        let mut form = Map::new();
        form.insert("type".to_owned(), native.as_str().into());
        for keyword in words_of_type(&native) {
            let value = if is_last { members.shift_remove(*keyword) } else { members.get(*keyword).cloned() };
            form.extend(value.map(|value| ((*keyword).to_owned(), as_double(value))));
        }
        let is_foreign =
            |format: &Value| format.as_str().is_none_or(|name| !words_of_type(kind).contains(&name));
        if form.get("format").is_some_and(is_foreign) {
            form.shift_remove("format");
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            self.native_enum(kind, values, &mut form);
        }
        let has_no_members =
            form.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
        if kind == "object" && has_no_members {
            return self.json_text(Some("object"), None);
        }
        if kind == "array" && !form.get("items").is_some_and(Value::is_object) {
            let items = self.at_step(Step::Keyword("items"), |lowering| lowering.json_text(None, None));
            form.insert("items".to_owned(), items);
        }
        Value::Object(form)
    }

    /// The values of an enumeration are strings, even those of numbers.
    fn native_enum(&mut self, kind: &str, values: &[Value], form: &mut Map<String, Value>) {
        let fits = |value: &&Value| match kind {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            _ => false,
        };
        let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let texts: Vec<String> = values.iter().filter(fits).map(as_text).collect();
        if !texts.is_empty() {
            // The list makes other constraints redundant.
            form.retain(|keyword, _| keyword == "type");
            form.insert("format".to_owned(), "enum".into());
            form.insert("enum".to_owned(), texts.into());
        }
    }

    /// A value that this language cannot express: the model writes it as JSON text, which the view parses.
    pub(super) fn json_text(&mut self, kind: Option<&str>, note: Option<String>) -> Value {
        let what = match kind {
            Some("object") => "a JSON object, written as JSON text",
            Some("array") => "a JSON array, written as JSON text",
            _ => "any JSON value, written as JSON text",
        };
        self.json_texts.push(JsonTextArgument::new(&self.path, !matches!(kind, Some("object" | "array"))));
        self.report_loss("type", LossKind::Rewritten, format!("STRING: {what}"));
        let notes: Vec<String> = std::iter::once(what.to_owned()).chain(note).collect();
        object([("type", "STRING".into()), ("description", append_notes(None, &notes).into())])
    }
}

/// The types of a schema: those of `type`, or those that its keywords imply.
fn kinds(members: &Map<String, Value>) -> Vec<String> {
    let named = match members.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if !named.is_empty() || members.contains_key("anyOf") {
        return named;
    }
    let mut kinds: Vec<&str> = Vec::new();
    for value in members.get("enum").and_then(Value::as_array).into_iter().flatten() {
        let kind = match value {
            Value::String(_) => "string",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Null => "null",
            _ => continue,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.contains(&"number") {
        kinds.retain(|kind| *kind != "integer");
    }
    if kinds.is_empty() {
        let has_keyword = |kind: &&str| {
            words_of_type(&kind.to_ascii_uppercase()).iter().any(|keyword| members.contains_key(*keyword))
        };
        kinds.extend(["object", "array", "string", "number"].into_iter().find(has_keyword));
    }
    kinds.into_iter().map(str::to_owned).collect()
}

/// Limits are doubles: a whole number that a double cannot represent becomes the nearest one.
fn as_double(value: Value) -> Value {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_f64().filter(|number| number.abs() > MAX_EXACT).map_or(value, Value::from)
}

fn take_text(members: &mut Map<String, Value>, keyword: &str) -> Option<String> {
    match members.shift_remove(keyword) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// One schema, or a union of several. A union has no keywords beside it, so its branches carry the description.
fn union_of(
    forms: Vec<Value>,
    is_nullable: bool,
    description: Option<String>,
    title: Option<String>,
) -> Value {
    let is_union = forms.len() > 1;
    let mut branches = Vec::with_capacity(forms.len());
    for form in forms {
        let Value::Object(mut form) = form else { continue };
        if let Some(nested) = form.shift_remove("anyOf") {
            // A union in a union is flattened.
            let Value::Array(nested) = nested else { continue };
            branches.extend(nested);
            continue;
        }
        let described = match (&description, take_text(&mut form, "description")) {
            (Some(outer), Some(inner)) if outer != &inner => Some(format!("{outer} {inner}")),
            (outer, inner) => inner.or_else(|| outer.clone()),
        };
        form.extend(described.map(|text| ("description".to_owned(), text.into())));
        if is_nullable && form.get("type").is_some_and(|kind| kind != "NULL") {
            form.insert("nullable".to_owned(), true.into());
        }
        if let Some(title) = title.as_ref().filter(|_| !is_union && !form.contains_key("title")) {
            form.insert("title".to_owned(), title.as_str().into());
        }
        branches.push(Value::Object(form));
    }
    if branches.len() == 1 { branches.remove(0) } else { object([("anyOf", branches.into())]) }
}
