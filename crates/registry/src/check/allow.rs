//! Warnings that an author has acknowledged: `"allow": ["writes-unconfirmed"]` in `schema.json`.

use serde_json::{Map, Value};

use crate::diagnostic::{DiagnosticDraft, Severity};
use crate::fields::SCHEMA_FILE;

/// Removes the warnings that `allow` names, and reports names without a warning.
pub(super) fn apply(members: &Map<String, Value>, drafts: &mut Vec<DiagnosticDraft>) {
    let names = members.get("allow").and_then(Value::as_array).into_iter().flatten();
    for (index, name) in names.enumerate() {
        let Some(name) = name.as_str().filter(|name| WARNINGS.contains(name)) else { continue };
        let before = drafts.len();
        drafts.retain(|draft| draft.severity != Severity::Warning || draft.code != name);
        if drafts.len() == before {
            let message = format!("`allow` names `{name}`, and there is no such warning in this tool");
            let draft =
                DiagnosticDraft::json("allow-unused", SCHEMA_FILE, format!("/allow/{index}"), message);
            drafts.push_mut(draft).help("remove it").warning();
        }
    }
}

/// The codes that can be allowed. A test compares them with docs/reference/diagnostics.md.
pub(crate) const WARNINGS: &[&str] = &[
    "tool-id-refused",
    "writes-unconfirmed",
    "voice-latency",
    "clamp-mode",
    "parameters-name-refused",
    "summary-too-many-lines",
    "doc-duplicate-section",
    "doc-unclosed-fence",
    "doc-no-example",
    "handler-unknown-context",
    "handler-capability-refused",
    "handler-unavailable-global",
    "handler-hidden-unicode",
];
