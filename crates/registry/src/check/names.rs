//! Names that not every model provider takes: the tool, or the parameter, would be missing in that provider's view.

use serde_json::Value;

use toolwright_schema::pointer::push_pointer;
use toolwright_schema::visit_subschemas;

/// Every provider takes names of tools up to this length; snake_case is no trouble to any.
pub(super) const LONGEST: usize = 64;

/// How to mend it.
pub(super) const HELP: &str = "use letters, digits and `_`, beginning with a letter or `_`, at most 64 of them; \
    `toolwright schema --lossy` shows what a provider's form leaves out";

/// Pointers to the parameters whose names some providers refuse, and the names.
pub(super) fn refused(parameters: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    visit_subschemas(parameters, &mut |pointer, schema| {
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(|properties| properties.keys()) {
            if !is_taken(name) {
                let mut pointer = format!("{pointer}/properties");
                push_pointer(&mut pointer, name);
                found.push((pointer, name.clone()));
            }
        }
    });
    found
}

fn is_taken(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
