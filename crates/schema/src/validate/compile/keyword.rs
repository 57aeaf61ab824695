//! The keywords that constrain an instance, and a schema's values for them, picked out in one pass.

use serde_json::{Map, Value};

macro_rules! keywords {
    ($($field:ident $name:literal)*) => {
        /// What a schema says for each keyword.
        #[derive(Default)]
        pub struct Keywords<'s> { $(pub $field: Option<&'s Value>,)* }

        impl<'s> Keywords<'s> {
            pub fn of(schema: &'s Map<String, Value>) -> Self {
                let mut all = Self::default();
                for (name, value) in schema {
                    match name.as_str() { $($name => all.$field = Some(value),)* _ => {} }
                }
                all
            }
        }

        /// Whether a keyword constrains an instance (the entries of Ajv's `RULES.all`).
        pub fn is_rule(name: &str) -> bool {
            matches!(name, $($name)|* | "$comment" | "id") && !matches!(name, "$id" | "$schema")
        }
    };
}

keywords! {
    id "$id" schema "$schema"
    dynamic_anchor "$dynamicAnchor" dynamic_ref "$dynamicRef"
    recursive_anchor "$recursiveAnchor" recursive_ref "$recursiveRef"
    reference "$ref" kind "type" nullable "nullable" constant "const" values "enum"
    not "not" any_of "anyOf" one_of "oneOf" all_of "allOf" test "if" then "then" otherwise "else"
    maximum "maximum" minimum "minimum" exclusive_maximum "exclusiveMaximum"
    exclusive_minimum "exclusiveMinimum" multiple_of "multipleOf" format "format"
    max_length "maxLength" min_length "minLength" pattern "pattern"
    format_maximum "formatMaximum" format_minimum "formatMinimum"
    format_exclusive_maximum "formatExclusiveMaximum" format_exclusive_minimum "formatExclusiveMinimum"
    max_items "maxItems" min_items "minItems" prefix_items "prefixItems" items "items"
    additional_items "additionalItems" contains "contains" unique_items "uniqueItems"
    max_contains "maxContains" min_contains "minContains" unevaluated_items "unevaluatedItems"
    max_properties "maxProperties" min_properties "minProperties" required "required"
    property_names "propertyNames" additional_properties "additionalProperties"
    dependencies "dependencies" properties "properties" pattern_properties "patternProperties"
    dependent_required "dependentRequired" dependent_schemas "dependentSchemas"
    unevaluated_properties "unevaluatedProperties"
}

/// Whether any keyword of a group is there; `format` belongs to two.
impl Keywords<'_> {
    pub fn are_for_numbers(&self) -> bool {
        let bounds = [self.maximum, self.minimum, self.exclusive_maximum, self.exclusive_minimum];
        any(&bounds) || any(&[self.multiple_of, self.format])
    }

    pub fn are_for_strings(&self) -> bool {
        let bounds = [
            self.format_maximum,
            self.format_minimum,
            self.format_exclusive_maximum,
            self.format_exclusive_minimum,
        ];
        any(&bounds) || any(&[self.max_length, self.min_length, self.pattern, self.format])
    }

    pub fn are_for_arrays(&self) -> bool {
        let counts = [self.max_items, self.min_items, self.max_contains, self.min_contains];
        let schemas = [self.prefix_items, self.items, self.additional_items, self.contains];
        any(&counts) || any(&schemas) || any(&[self.unique_items, self.unevaluated_items])
    }

    pub fn are_for_objects(&self) -> bool {
        let names = [self.max_properties, self.min_properties, self.required, self.property_names];
        let dependent = [self.dependencies, self.dependent_required, self.dependent_schemas];
        let schemas = [
            self.properties,
            self.pattern_properties,
            self.additional_properties,
            self.unevaluated_properties,
        ];
        any(&names) || any(&dependent) || any(&schemas)
    }
}

fn any(values: &[Option<&Value>]) -> bool {
    values.iter().any(Option::is_some)
}

/// Whether a schema allows everything.
pub fn always_valid(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => !object.keys().any(|name| is_rule(name)),
        other => *other != Value::Bool(false),
    }
}
