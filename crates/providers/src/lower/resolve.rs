//! Resolves references within one schema.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The schema that `reference` names; `None` if it is in another document.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let resource = if base.is_empty() { root } else { find(root, &|schema| is_named(schema, base))? };
    let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
    if fragment.is_empty() {
        return Some(resource);
    }
    if fragment.starts_with('/') {
        return resource.pointer(&fragment);
    }
    let anchor = |schema: &Value| {
        let is = |keyword: &str, name: &str| schema.get(keyword).and_then(Value::as_str) == Some(name);
        is("$anchor", &fragment)
            || is("$dynamicAnchor", &fragment)
            || is("$id", reference)
            || is("id", reference)
    };
    find(resource, &anchor)
}

fn is_named(schema: &Value, base: &str) -> bool {
    let named = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let id = named("$id").or_else(|| named("id"));
    id.is_some_and(|id| {
        let id = id.trim_end_matches('#');
        // Without a base URI, relative references are compared by their last segments.
        !id.is_empty() && (id == base || id.ends_with(&format!("/{}", base.trim_start_matches("./"))))
    })
}

/// The first value, from the outside in, that `is_match`.
fn find<'a>(value: &'a Value, is_match: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    match value {
        Value::Object(members) => {
            if is_match(value) {
                return Some(value);
            }
            members.values().find_map(|member| find(member, is_match))
        }
        Value::Array(items) => items.iter().find_map(|item| find(item, is_match)),
        _ => None,
    }
}
