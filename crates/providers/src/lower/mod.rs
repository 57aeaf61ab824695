//! Schemas lowered to what a provider takes: each provider is a policy, and one walk serves all of them.
//!
//! Nothing is lost silently: what a view cannot say goes into descriptions where it can, and into the report always.

mod emit;
mod keyword;
mod native;
mod node;
mod resolve;
mod root;
pub(crate) mod strict;
mod text;

use serde_json::{Map, Value};
use toolwright_contract::ToolSpec;

pub(crate) use text::Text;

use crate::provider::{is_name, object};
use crate::{Done, Loss};
use text::Step;

/// What a provider takes of JSON Schema.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The keywords that it honours; `None`: all of them.
    keeps: Option<&'static [&'static str]>,
    /// The formats that it honours; `None`: all of them.
    formats: Option<&'static [&'static str]>,
    references: References,
    /// The values that it takes in `enum`.
    lists: fn(&Value) -> bool,
    /// Whether objects without `properties`, and arrays without `items`, are refused.
    is_explicit: bool,
    /// Whether `anyOf` and the like may stand at the top.
    has_unions_at_root: bool,
    /// Which names of parameters it takes; `None`: all.
    pub names: Option<fn(&str) -> bool>,
    /// Whether this goes for parameters inside of parameters too.
    has_nested_names: bool,
    /// What holds for the items of arrays, if it is something else.
    items: Option<&'static Policy>,
    form: Form,
}

#[derive(Debug, PartialEq, Eq)]
enum References {
    Kept,
    /// Written out where they are used.
    Inlined,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    JsonSchema,
    /// Gemini's: upper-case types, one type a schema.
    Native,
}

const WHOLE: Policy = Policy {
    keeps: None,
    formats: None,
    references: References::Kept,
    lists: |_| true,
    is_explicit: true,
    has_unions_at_root: false,
    names: None,
    has_nested_names: false,
    items: None,
    form: Form::JsonSchema,
};

/// OpenAI refuses unions at the top; all else goes through, where it is not strict.
pub(crate) const OPENAI: Policy = WHOLE;

/// Anthropic refuses unions at the top too, and is particular about names.
pub(crate) const ANTHROPIC: Policy = Policy { names: Some(|name| is_name(name, 64, "_.-")), ..WHOLE };

/// MCP carries any JSON Schema.
pub(crate) const MCP: Policy = Policy { has_unions_at_root: true, is_explicit: false, ..WHOLE };

/// Ollama's server parses schemas into its own types, which have these fields; items it keeps as they are.
pub(crate) const OLLAMA: Policy = Policy {
    keeps: Some(&["type", "description", "enum", "items", "anyOf", "properties", "required"]),
    references: References::Inlined,
    items: Some(&Policy { references: References::Inlined, ..WHOLE }),
    ..WHOLE
};

/// What Gemini documents for JSON Schema. References could stay, but not with anything beside them.
pub(crate) const GEMINI: Policy = Policy {
    keeps: Some(&[
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
    ]),
    references: References::Inlined,
    lists: |value| value.is_string() || value.is_number(),
    ..WHOLE
};

/// Gemini's own `Schema`, without what its service has refused.
pub(crate) const GEMINI_NATIVE: Policy = Policy {
    keeps: Some(&[
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
    references: References::Inlined,
    // Null becomes `nullable`.
    lists: |value| {
        value.as_str().is_some_and(|text| !text.is_empty()) || value.is_number() || value.is_null()
    },
    names: Some(|name| is_name(name, 64, "_") && !name.starts_with(|c: char| c.is_ascii_digit())),
    has_nested_names: true,
    form: Form::Native,
    ..WHOLE
};

/// A schema that is larger once its references are written out is cut.
const MOST_NODES: usize = 4_000;
/// JSON itself is read to a depth of 128.
const DEEPEST: usize = 100;

/// Parameters in a provider's form.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub parameters: Map<String, Value>,
    /// What the top of the schema could not say: the tool's description says it.
    pub notes: Vec<String>,
    pub texts: Vec<Text>,
}

/// Lowers a tool's parameters.
pub(crate) fn lower(spec: &ToolSpec, policy: &'static Policy, losses: &mut Vec<Loss>) -> Lowered {
    let mut lowering = Lowering::new(&spec.json_schema, policy, &spec.tool_id, losses);
    let (parameters, notes) = lowering.root();
    Lowered { parameters, notes, texts: lowering.texts }
}

/// A schema of any draft in the words of 2020-12, with nothing lost.
pub(crate) fn normal(schema: &Value) -> Map<String, Value> {
    let mut losses = Vec::new();
    Lowering::new(schema, &MCP, "", &mut losses).root().0
}

/// One walk over one schema.
struct Lowering<'a, 'l> {
    root: &'a Value,
    policy: &'static Policy,
    tool: &'a str,
    path: Vec<Step<'a>>,
    /// References that are being written out: one that comes again goes in circles.
    open: Vec<&'a Value>,
    nodes: usize,
    losses: &'l mut Vec<Loss>,
    texts: Vec<Text>,
}

impl<'a, 'l> Lowering<'a, 'l> {
    fn new(root: &'a Value, policy: &'static Policy, tool: &'a str, losses: &'l mut Vec<Loss>) -> Self {
        let (path, open, texts) = (Vec::new(), vec![root], Vec::new());
        Self { root, policy, tool, path, open, nodes: 0, losses, texts }
    }

    fn keeps(&self, keyword: &str) -> bool {
        self.policy.keeps.is_none_or(|kept| kept.contains(&keyword))
    }

    fn is_native(&self) -> bool {
        self.policy.form == Form::Native
    }

    fn takes_name(&self, name: &str) -> bool {
        let applies = self.path.is_empty() || self.policy.has_nested_names;
        !applies || self.policy.names.is_none_or(|takes| takes(name))
    }

    fn lose(&mut self, keyword: &str, done: Done, note: impl Into<String>) {
        self.losses.push(Loss {
            tool: self.tool.to_owned(),
            path: text::pointer(&self.path),
            keyword: keyword.to_owned(),
            done,
            note: note.into(),
        });
    }

    /// Counts a schema. What is not written out from a reference is no larger than its source.
    fn is_too_large(&mut self) -> bool {
        self.nodes += usize::from(self.open.len() > 1 && self.policy.references == References::Inlined);
        self.nodes > MOST_NODES
    }

    /// Runs `work` one step further down.
    fn below<T>(&mut self, step: Step<'a>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = work(self);
        self.path.pop();
        result
    }

    /// The conjunction of `schemas`, in the provider's form. `inherited` is the type that a schema around it has.
    fn child(&mut self, schemas: &[&'a Value], inherited: Option<&'a Value>) -> Value {
        if self.is_too_large() || self.path.len() > DEEPEST {
            self.lose("$ref", Done::Cut, "the schema is too large to be written out");
            return self.anything(None, "any value; the form is too large to be shown");
        }
        let is_kept = self.policy.references == References::Kept;
        if is_kept && schemas.len() > 1 {
            let all: Vec<Value> = schemas.iter().map(|schema| self.child(&[schema], None)).collect();
            return object([("allOf", all.into())]);
        }
        let opened = self.open.len();
        let node = self.gather(schemas, inherited, !is_kept);
        let value = match node.circular {
            Some(target) => self.cut(target),
            None => self.emit(&node),
        };
        self.open.truncate(opened);
        value
    }

    /// A schema that contains itself: written out once, and then only named.
    fn cut(&mut self, target: &'a Value) -> Value {
        self.lose("$ref", Done::Cut, "the schema contains itself; its form is shown once");
        let named = target.get("title").or_else(|| target.get("description")).and_then(Value::as_str);
        let note = match named {
            Some(name) => format!("nested: again of the form that is shown above: {name}"),
            None => "nested: again of the form that is shown above".to_owned(),
        };
        self.anything(target.get("type"), &note)
    }

    /// A value of which no more than its type is said.
    fn anything(&mut self, kind: Option<&'a Value>, note: &str) -> Value {
        if self.is_native() {
            return Value::Object(self.text(kind.and_then(Value::as_str), Some(note.to_owned())));
        }
        let mut value = Map::new();
        if let Some(kind) = kind.filter(|kind| keyword::fits("type", kind)) {
            value.insert("type".to_owned(), kind.clone());
        }
        value.insert("description".to_owned(), keyword::sentence(None, &[note.to_owned()]).into());
        Value::Object(value)
    }
}
