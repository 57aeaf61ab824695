//! Values against schemas: a compiled validator, and findings that point into the value.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions};
use serde_json::Value;

use super::defaults::fill_defaults;
use crate::json::{Part, child_pointer};
use crate::suggest::nearest;

/// A pattern that needs more steps than this on one string is treated as not matching.
const BACKTRACK_LIMIT: usize = 100_000;

static OPTIONS: LazyLock<ValidationOptions<'static>> = LazyLock::new(|| {
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT));
    super::formats::register(options)
});

/// A schema, ready to judge values.
#[derive(Debug)]
pub struct Validator {
    compiled: jsonschema::Validator,
}

/// What is wrong with a value, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    pub pointer: String,
    pub part: Part,
    pub message: String,
    pub help: Option<String>,
}

/// Compiles a schema that has passed the linter.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    OPTIONS.build(schema).map(|compiled| Validator { compiled }).map_err(|error| error.to_string())
}

impl Validator {
    /// All that is wrong with `value` once the defaults of `schema` are filled in.
    pub fn check(&self, schema: &Value, value: &Value) -> Vec<Misfit> {
        let mut filled = value.clone();
        fill_defaults(schema, schema, &mut filled);
        self.compiled.iter_errors(&filled).take(20).flat_map(|error| misfits(&error, schema)).collect()
    }
}

fn misfits(error: &ValidationError<'_>, schema: &Value) -> Vec<Misfit> {
    let pointer = error.instance_path().as_str().to_owned();
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        let keywords = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let known =
            schema.pointer(keywords).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let unknown = |name: &String| Misfit {
            pointer: child_pointer(&pointer, name),
            part: Part::Key,
            message: format!("there is no parameter `{name}`"),
            help: nearest(name, known.into_iter().flatten().map(|(name, _)| name.as_str()))
                .map(|near| format!("did you mean `{near}`?")),
        };
        return unexpected.iter().map(unknown).collect();
    }
    vec![Misfit { pointer, part: Part::Value, message: error.to_string(), help: None }]
}
