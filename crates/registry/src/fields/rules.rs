//! Rules between fields. Each applies only to values that are valid on their own.

use serde_json::{Map, Value};
use toolwright_contract::Mode;
use toolwright_contract::suggest::list;
use toolwright_schema::pointer::child_pointer;

use super::FieldCheck;

/// The longest latency budget, in milliseconds, that suits a voice conversation.
const MAX_VOICE_LATENCY_MS: f64 = 1000.0;

/// All rules of a `schema.json`.
pub(super) fn check_schema_file(check: &mut FieldCheck<'_>, members: &Map<String, Value>) {
    check_retrieval(check, members);
    check_confirmation(check, members);
    check_latency(check, members);
    check_clamp_modes(check, members);
}

/// A retrieval tool is read-only and idempotent.
pub(super) fn check_retrieval(check: &mut FieldCheck<'_>, members: &Map<String, Value>) {
    if members.get("category").is_none_or(|category| category != "retrieval") {
        return;
    }
    if members.get("sideEffects").is_some_and(|effects| effects == "writes") {
        let message = "`sideEffects` of a retrieval tool must be `none` or `read_only`, got `writes`";
        check
            .error("retrieval-writes", "/sideEffects", message)
            .help("write `none` or `read_only`; a tool that writes is an `action`");
    }
    if members.get("idempotent") == Some(&Value::Bool(false)) {
        let message = "`idempotent` of a retrieval tool must be true, got false";
        check
            .error("retrieval-not-idempotent", "/idempotent", message)
            .help("write true, or make the tool an `action`");
    }
}

fn check_confirmation(check: &mut FieldCheck<'_>, members: &Map<String, Value>) {
    let is = |name: &str, word: &str| members.get(name).is_some_and(|value| value == word);
    let never_asks = members.get("requiresConfirmation") == Some(&Value::Bool(false));
    if is("category", "action") && is("sideEffects", "writes") && never_asks {
        let message = "`requiresConfirmation` is false, so this action writes without approval";
        check
            .error("writes-unconfirmed", "/requiresConfirmation", message)
            .help("set it to true or to a rule `{ \"when\": … }`, unless that is intended")
            .warning();
    }
}

fn check_latency(check: &mut FieldCheck<'_>, members: &Map<String, Value>) {
    let modes = members.get("allowedModes").and_then(Value::as_array);
    let allows_voice = modes.is_some_and(|modes| modes.iter().any(|mode| mode == "voice"));
    let Some(budget) = members.get("latencyBudgetMs").and_then(Value::as_f64) else { return };
    if allows_voice && budget > MAX_VOICE_LATENCY_MS {
        let message =
            format!("`latencyBudgetMs` is {budget}; more than {MAX_VOICE_LATENCY_MS} is slow for voice");
        check
            .error("voice-latency", "/latencyBudgetMs", message)
            .help("lower the budget, or remove `voice` from `allowedModes`")
            .warning();
    }
    let timeout = members.get("timeoutMs").and_then(Value::as_f64);
    if let Some(timeout) = timeout.filter(|timeout| *timeout < budget) {
        let message = format!("`timeoutMs` is {timeout}, below `latencyBudgetMs` of {budget}");
        check
            .error("timeout-below-budget", "/timeoutMs", message)
            .help("`timeoutMs` stops the call; `latencyBudgetMs` is only the expected time");
    }
}

/// A clamp for a mode that the tool does not allow never applies.
fn check_clamp_modes(check: &mut FieldCheck<'_>, members: &Map<String, Value>) {
    let (Some(clamp), Some(modes)) = (
        members.get("clamp").and_then(Value::as_object),
        members.get("allowedModes").and_then(Value::as_array),
    ) else {
        return;
    };
    let allowed: Vec<&str> = modes.iter().filter_map(Value::as_str).collect();
    for mode in clamp.keys().filter(|mode| Mode::from_word(mode).is_some()) {
        if !allowed.contains(&mode.as_str()) {
            let message = format!("`clamp.{mode}` never applies: `allowedModes` does not have `{mode}`");
            check
                .error("clamp-mode", child_pointer("/clamp", mode), message)
                .at_key()
                .help(format!("`allowedModes` has {}", list(&allowed)))
                .warning();
        }
    }
}
