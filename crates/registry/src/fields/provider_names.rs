//! Names that some model providers reject: the tool or parameter would be missing in that provider's view.

use serde_json::Value;

use toolwright_schema::pointer::child_pointer;
use toolwright_schema::visit_subschemas;

/// Every provider accepts tool names up to this length.
pub(super) const MAX_NAME_BYTES: usize = 64;

pub(super) const HELP: &str = "use letters, digits and `_`, beginning with a letter or `_`, at most 64 of them; \
    `toolwright schema --lossy` shows what a provider's view leaves out";

/// The parameters whose names some providers reject: pointer and name.
pub(super) fn rejected_parameters(parameters: &Value) -> Vec<(String, String)> {
    let mut rejected = Vec::new();
    visit_subschemas(parameters, &mut |pointer, schema| {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, _) in properties.filter(|(name, _)| !is_accepted(name)) {
            rejected.push((child_pointer(&format!("{pointer}/properties"), name), name.clone()));
        }
    });
    rejected
}

fn is_accepted(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
