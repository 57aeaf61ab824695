//! Parts of reference resolution that the linter and the validator share.

use std::sync::LazyLock;

use serde_json::Value;

use crate::keyword::constrains;
use crate::pointer::child_pointer;
use crate::uri;

/// The meta-schemas of 2020-12, by the end of their URIs.
const META_SCHEMA_TEXTS: [(&str, &str); 8] = [
    ("schema", include_str!("meta/schema.json")),
    ("meta/applicator", include_str!("meta/applicator.json")),
    ("meta/content", include_str!("meta/content.json")),
    ("meta/core", include_str!("meta/core.json")),
    ("meta/format-annotation", include_str!("meta/format-annotation.json")),
    ("meta/meta-data", include_str!("meta/meta-data.json")),
    ("meta/unevaluated", include_str!("meta/unevaluated.json")),
    ("meta/validation", include_str!("meta/validation.json")),
];

pub static META_SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    META_SCHEMA_TEXTS.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect()
});

/// Whether a URI names a built-in meta-schema.
pub fn is_meta_schema(uri: &str) -> bool {
    match uri.strip_prefix("https://json-schema.org/draft/2020-12/") {
        Some(rest) => META_SCHEMA_TEXTS.iter().any(|(name, _)| *name == rest),
        None => uri == "http://json-schema.org/schema",
    }
}

/// The reference of a schema that constrains nothing else.
pub fn bare_reference(schema: &Value) -> Option<&str> {
    let object = schema.as_object()?;
    let reference = object.get("$ref")?.as_str().filter(|reference| !reference.is_empty())?;
    object.keys().all(|name| name == "$ref" || !constrains(name)).then_some(reference)
}

/// Follows a pointer that is part of a URI. Returns the value there and its base URI, which an `$id` on the way
/// changes. Calls `visit` for each segment.
pub fn follow_pointer<'s>(
    mut value: &'s Value,
    base: &str,
    segments: &str,
    mut visit: impl FnMut(&str),
) -> Option<(&'s Value, String)> {
    let mut base = base.to_owned();
    for segment in segments.split('/') {
        let name = uri::decode_segment(segment)?;
        visit(&name);
        value = value.pointer(&child_pointer("", &name))?;
        // Below these keywords, a member called `$id` is data.
        let is_data =
            matches!(segment, "properties" | "patternProperties" | "enum" | "dependencies" | "definitions");
        let id = value.get("$id").and_then(Value::as_str).filter(|id| !id.is_empty() && !is_data);
        if let Some(id) = id {
            base = uri::resolve(&base, uri::normalize_id(id))?;
        }
    }
    Some((value, base))
}
