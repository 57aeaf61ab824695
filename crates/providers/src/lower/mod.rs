//! Lowers a schema to a provider's dialect of JSON Schema: each provider is a `Dialect`, and one walk serves all of
//! them.
//!
//! Nothing is lost silently: what a dialect cannot express is described in words where possible, and always reported.

mod emit;
mod keyword;
mod merge;
mod native;
mod path;
mod root;
pub(crate) mod strict;

use serde_json::{Map, Value};
use toolwright_contract::ToolSpec;

pub(crate) use path::JsonTextArgument;

use crate::provider::{is_name, object};
use crate::{Loss, LossKind};
use path::Step;

/// The part of JSON Schema that a provider supports.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The supported keywords; `None`: all.
    keywords: Option<&'static [&'static str]>,
    /// The supported formats; `None`: all.
    formats: Option<&'static [&'static str]>,
    /// Whether references are replaced by the schema that they refer to.
    inlines_references: bool,
    /// The supported values of `enum`.
    accepts_enum_value: fn(&Value) -> bool,
    /// Whether objects need `properties`, and arrays `items`.
    is_explicit: bool,
    /// Whether the root can have `anyOf` and the like.
    allows_root_unions: bool,
    /// The supported names of parameters; `None`: all.
    pub accepts_parameter: Option<fn(&str) -> bool>,
    /// Whether nested properties must have such names too.
    checks_nested_names: bool,
    /// The dialect of the items of arrays, if it is another one.
    items: Option<&'static Dialect>,
    /// Gemini's own form: upper-case types, one type per schema.
    is_native: bool,
}

/// All of JSON Schema, with an object at the root.
const FULL: Dialect = Dialect {
    keywords: None,
    formats: None,
    inlines_references: false,
    accepts_enum_value: |_| true,
    is_explicit: true,
    allows_root_unions: false,
    accepts_parameter: None,
    checks_nested_names: false,
    items: None,
    is_native: false,
};

/// OpenAI rejects unions at the root. Outside of strict mode it accepts everything else.
pub(crate) const OPENAI: Dialect = FULL;

/// Anthropic rejects unions at the root and some names of parameters.
pub(crate) const ANTHROPIC: Dialect =
    Dialect { accepts_parameter: Some(|name| is_name(name, 64, "_.-")), ..FULL };

/// MCP accepts any JSON Schema.
pub(crate) const MCP: Dialect = Dialect { allows_root_unions: true, is_explicit: false, ..FULL };

/// Ollama's server parses schemas into its own types, which have these fields, and leaves `items` unparsed.
pub(crate) const OLLAMA: Dialect = Dialect {
    keywords: Some(&["type", "description", "enum", "items", "anyOf", "properties", "required"]),
    inlines_references: true,
    items: Some(&Dialect { inlines_references: true, ..FULL }),
    ..FULL
};

/// `parametersJsonSchema` is plain JSON Schema. Gemini documents references only without other keywords beside them,
/// and enumerations of strings and numbers; unions and conditions that it does not document are described as well.
pub(crate) const GEMINI: Dialect = Dialect {
    keywords: Some(&[
        "type",
        "format",
        "title",
        "description",
        "default",
        "examples",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "anyOf",
        "oneOf",
        "properties",
        "minProperties",
        "maxProperties",
        "additionalProperties",
        "required",
    ]),
    inlines_references: true,
    accepts_enum_value: |value| value.is_string() || value.is_number(),
    ..FULL
};

/// Gemini's own `Schema`, without the keywords that its service rejects.
pub(crate) const GEMINI_NATIVE: Dialect = Dialect {
    keywords: Some(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "anyOf",
    ]),
    formats: Some(&["date-time", "int32", "int64", "float", "double"]),
    inlines_references: true,
    // Null is written as `nullable`.
    accepts_enum_value: |value| {
        value.as_str().is_some_and(|text| !text.is_empty()) || value.is_number() || value.is_null()
    },
    accepts_parameter: Some(|name| is_name(name, 64, "_") && !name.starts_with(|c: char| c.is_ascii_digit())),
    checks_nested_names: true,
    is_native: true,
    ..FULL
};

/// The most schemas that inlined references can add.
const MAX_INLINED_SCHEMAS: usize = 4_000;
/// Below the nesting limit of JSON parsers, which is 128.
const MAX_DEPTH: usize = 100;

/// Parameters in a provider's dialect.
#[derive(Debug)]
pub(crate) struct LoweredSchema {
    pub parameters: Map<String, Value>,
    /// Constraints that the root of the schema cannot express; they go into the tool's description.
    pub notes: Vec<String>,
    pub json_texts: Vec<JsonTextArgument>,
}

/// Lowers a tool's parameters.
pub(crate) fn lower(spec: &ToolSpec, dialect: &'static Dialect, losses: &mut Vec<Loss>) -> LoweredSchema {
    let mut lowering = Lowering::new(&spec.json_schema, dialect, &spec.tool_id, losses);
    let (parameters, notes) = lowering.root();
    LoweredSchema { parameters, notes, json_texts: lowering.json_texts }
}

/// Rewrites a schema of any draft to 2020-12, without losses.
pub(crate) fn to_2020_12(schema: &Value) -> Map<String, Value> {
    let mut losses = Vec::new();
    Lowering::new(schema, &MCP, "", &mut losses).root().0
}

/// One walk over one schema.
struct Lowering<'a, 'l> {
    root: &'a Value,
    dialect: &'static Dialect,
    tool: &'a str,
    path: Vec<Step<'a>>,
    /// The schemas that contain the current one through references: a reference to one of them is recursive.
    open: Vec<&'a Value>,
    inlined_schemas: usize,
    losses: &'l mut Vec<Loss>,
    json_texts: Vec<JsonTextArgument>,
}

impl<'a, 'l> Lowering<'a, 'l> {
    fn new(root: &'a Value, dialect: &'static Dialect, tool: &'a str, losses: &'l mut Vec<Loss>) -> Self {
        let (path, open, json_texts) = (Vec::new(), vec![root], Vec::new());
        Self { root, dialect, tool, path, open, inlined_schemas: 0, losses, json_texts }
    }

    fn supports(&self, keyword: &str) -> bool {
        self.dialect.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }

    fn accepts_name(&self, name: &str) -> bool {
        let is_checked = self.path.is_empty() || self.dialect.checks_nested_names;
        !is_checked || self.dialect.accepts_parameter.is_none_or(|accepts| accepts(name))
    }

    fn report_loss(&mut self, keyword: &str, kind: LossKind, note: impl Into<String>) {
        self.losses.push(Loss {
            tool: self.tool.to_owned(),
            path: path::pointer(&self.path),
            keyword: keyword.to_owned(),
            kind,
            note: note.into(),
        });
    }

    /// Counts a schema. Without inlined references the result is not larger than its source.
    fn is_too_large(&mut self) -> bool {
        self.inlined_schemas += usize::from(self.open.len() > 1 && self.dialect.inlines_references);
        self.inlined_schemas > MAX_INLINED_SCHEMAS
    }

    /// Runs `work` at a schema below the current one.
    fn at_step<T>(&mut self, step: Step<'a>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = work(self);
        self.path.pop();
        result
    }

    /// Lowers the conjunction of `schemas`. `inherited` is the type of the schema around it.
    fn lower_schema(&mut self, schemas: &[&'a Value], inherited: Option<&'a Value>) -> Value {
        if self.is_too_large() || self.path.len() > MAX_DEPTH {
            self.report_loss("$ref", LossKind::Cut, "the schema is too large to be written out");
            return self.any_value(None, "any value; the form is too large to be shown");
        }
        let inlines = self.dialect.inlines_references;
        if !inlines && schemas.len() > 1 {
            let all: Vec<Value> = schemas.iter().map(|schema| self.lower_schema(&[schema], None)).collect();
            return object([("allOf", all.into())]);
        }
        let opened = self.open.len();
        let schema = self.merge(schemas, inherited, inlines);
        let value = match schema.recursive {
            Some(target) => self.cut_recursion(target),
            None => self.emit(&schema),
        };
        self.open.truncate(opened);
        value
    }

    /// A reference to a schema that contains it: described only.
    fn cut_recursion(&mut self, target: &'a Value) -> Value {
        self.report_loss("$ref", LossKind::Cut, "the schema contains itself; its form is shown once");
        let named = target.get("title").or_else(|| target.get("description")).and_then(Value::as_str);
        let note = match named {
            Some(name) => format!("nested: again of the form that is shown above: {name}"),
            None => "nested: again of the form that is shown above".to_owned(),
        };
        self.any_value(target.get("type"), &note)
    }

    /// A schema with a type and a description only.
    fn any_value(&mut self, kind: Option<&'a Value>, note: &str) -> Value {
        if self.dialect.is_native {
            return self.json_text(kind.and_then(Value::as_str), Some(note.to_owned()));
        }
        let mut value = Map::new();
        if let Some(kind) = kind.filter(|kind| keyword::is_valid("type", kind)) {
            value.insert("type".to_owned(), kind.clone());
        }
        value.insert("description".to_owned(), keyword::append_notes(None, &[note.to_owned()]).into());
        Value::Object(value)
    }
}
