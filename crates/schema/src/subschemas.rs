//! Where schemas hold schemas. The one table of it; data such as `enum` or `default` is never entered.

use serde_json::Value;

use crate::pointer::push_pointer;

/// How a keyword holds subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    One,
    List,
    Map,
}

/// How `keyword` holds subschemas, if it does.
pub(crate) fn holds(keyword: &str) -> Option<Holds> {
    match keyword {
        "additionalProperties"
        | "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Some(Holds::One),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(Holds::List),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Some(Holds::Map),
        _ => None,
    }
}

/// Calls `f` for `schema` and every schema inside it, with its pointer.
pub fn visit<'v>(schema: &'v Value, pointer: &mut String, f: &mut dyn FnMut(&str, &'v Value)) {
    f(pointer, schema);
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        let Some(holds) = holds(keyword) else { continue };
        let length = pointer.len();
        push_pointer(pointer, keyword);
        match (holds, value) {
            (Holds::One, value) => visit(value, pointer, f),
            (Holds::List, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let length = pointer.len();
                    push_pointer(pointer, &index.to_string());
                    visit(item, pointer, f);
                    pointer.truncate(length);
                }
            }
            (Holds::Map, Value::Object(children)) => {
                for (name, child) in children {
                    let length = pointer.len();
                    push_pointer(pointer, name);
                    visit(child, pointer, f);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        pointer.truncate(length);
    }
}

/// Calls `f` for `schema` and every schema inside it, for changing them.
pub fn visit_mut(schema: &mut Value, f: &mut dyn FnMut(&mut Value)) {
    f(schema);
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (holds(keyword), value) {
            (Some(Holds::One), value) => visit_mut(value, f),
            (Some(Holds::List), Value::Array(items)) => items.iter_mut().for_each(|item| visit_mut(item, f)),
            (Some(Holds::Map), Value::Object(children)) => {
                children.values_mut().for_each(|child| visit_mut(child, f));
            }
            _ => {}
        }
    }
}
