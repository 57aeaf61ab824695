//! Visits a schema and all schemas inside it. Data such as `enum` or `default` is not entered.

use serde_json::Value;

use crate::keyword::{Keyword, Shape};
use crate::pointer::push_pointer;

/// Calls `visit` for `schema` and every schema inside it, with its pointer.
pub fn visit_subschemas<'v>(schema: &'v Value, visit: &mut dyn FnMut(&str, &'v Value)) {
    visit_at(schema, &mut String::new(), visit);
}

fn visit_at<'v>(schema: &'v Value, pointer: &mut String, visit: &mut dyn FnMut(&str, &'v Value)) {
    visit(pointer, schema);
    for (name, value) in schema.as_object().into_iter().flatten() {
        let Some(keyword) = Keyword::from_name(name) else { continue };
        with_segment(pointer, name, |pointer| match (keyword.shape(), value) {
            (Shape::Schema, schema) => visit_at(schema, pointer, visit),
            (Shape::SchemaList, Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    with_segment(pointer, &index.to_string(), |pointer| visit_at(schema, pointer, visit));
                }
            }
            (Shape::SchemaMap | Shape::Dependencies, Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    with_segment(pointer, name, |pointer| visit_at(schema, pointer, visit));
                }
            }
            _ => {}
        });
    }
}

fn with_segment(pointer: &mut String, segment: &str, then: impl FnOnce(&mut String)) {
    let length = pointer.len();
    push_pointer(pointer, segment);
    then(pointer);
    pointer.truncate(length);
}

/// Calls `change` for `schema` and every schema inside it. `change` must not move or remove schemas.
pub fn visit_subschemas_mut(schema: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    let mut pointers = Vec::new();
    visit_subschemas(schema, &mut |pointer, _| pointers.push(pointer.to_owned()));
    for pointer in pointers {
        schema.pointer_mut(&pointer).into_iter().for_each(&mut *change);
    }
}
