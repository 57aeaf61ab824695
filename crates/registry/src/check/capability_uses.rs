//! Uses of capabilities that the tool's side effects do not allow: each one throws when it runs.

use serde_json::{Map, Value};
use toolwright_contract::SideEffects;

use crate::diagnostic::{DiagnosticDraft, Location};
use crate::handler::ContextUse;

/// `members` are those of `schema.json`.
pub(super) fn check(members: &Map<String, Value>, uses: &[ContextUse], drafts: &mut Vec<DiagnosticDraft>) {
    let declared = members.get("sideEffects").and_then(Value::as_str).and_then(SideEffects::from_word);
    let Some(declared) = declared else { return };
    for ContextUse { function, file, span } in uses.iter().filter(|one| one.function.needs > declared) {
        let (path, needs) = (function.path, function.needs);
        let message = format!(
            "`context.{path}` needs `sideEffects: \"{needs}\"`, and this tool has \"{declared}\": it throws \
             NOT_ALLOWED"
        );
        let location = Location::Span(span.clone());
        let draft = DiagnosticDraft::error("handler-capability-refused", file.clone(), location, message);
        let help = format!("declare `\"sideEffects\": \"{needs}\"` in schema.json, or do without it");
        drafts.push(draft.with_help(help));
        if let Some(last) = drafts.last_mut() {
            last.warning();
        }
    }
}
