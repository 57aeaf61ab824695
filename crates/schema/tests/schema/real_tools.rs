//! Definitions of real tools that were not linted: they compile, and validation ends.

use serde_json::{Value, json};
use toolwright_schema::Validator;

const fn is_shared_between_threads<T: Send + Sync>() {}
const _: () = is_shared_between_threads::<Validator>();

#[test]
fn real_tools_compile() {
    let (mut total, mut refused) = (0, Vec::new());
    for (file, field) in [("real_tools.jsonl", "inputSchema"), ("recursive_schemas.jsonl", "schema")] {
        let Some(path) = crate::corpora::corpus(file) else { return };
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let tool: Value = serde_json::from_str(line).unwrap();
            let schema = tool.get(field).or_else(|| tool.get("inputSchema")).unwrap_or(&tool);
            total += 1;
            match Validator::compile(schema) {
                Ok(validator) => {
                    let mut value = json!({});
                    let _ = validator.validate(&mut value);
                    // Defaults are filled in by now, so both decide about the same value.
                    let valid = validator.validate(&mut value.clone()).is_ok();
                    assert_eq!(valid, validator.is_valid(&value), "{schema}");
                }
                Err(error) => refused.push(format!("{} {error}", tool["name"])),
            }
        }
    }
    println!("{total} schemas, {} refused", refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Older drafts are supported where they do not contradict the current one.
#[test]
fn older_drafts_are_supported() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": { "name": { "type": "string" } },
        "properties": {
            "pair": { "items": [{ "$ref": "#/definitions/name" }, { "type": "integer", "default": 3 }], "additionalItems": false },
            "age": { "type": "integer", "minimum": 0, "exclusiveMinimum": true },
        },
        "dependencies": { "age": ["pair"], "pair": { "required": ["age"] } },
        "x-unknown": true,
    });
    let validator = Validator::compile(&schema).unwrap();
    let mut value = json!({ "pair": ["a"], "age": 1 });
    assert_eq!(validator.validate(&mut value), Ok(()));
    assert_eq!(value, json!({ "pair": ["a", 3], "age": 1 }));
    assert!(!validator.is_valid(&json!({ "pair": ["a", 3, 4], "age": 1 })));
    assert!(!validator.is_valid(&json!({ "age": 1 })));
    assert!(!validator.is_valid(&json!({ "pair": ["a", 3] })));
}
