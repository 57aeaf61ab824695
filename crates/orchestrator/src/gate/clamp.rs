//! Limits numbers that policy or the tool clamps: the call runs with the limit, and reports it in `meta.clamped`.

use serde_json::{Number, Value, json};
use toolwright_contract::Category;
use toolwright_schema::compare_numbers;

use super::{GateInput, GateRefusal};
use crate::redaction;

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    let spec = &input.prepared.tool.spec;
    let own = spec.clamp.get(&input.session.mode);
    let mut limits: Vec<(&str, Number)> =
        own.into_iter().flatten().map(|(name, limit)| (name.as_str(), limit.clone())).collect();
    if spec.category == Category::Retrieval {
        limits.push(("top_k", input.mode_policy().limits.top_k.into()));
    }
    for (name, limit) in limits {
        let Some(given) = input.args.get_mut(name) else { continue };
        let Value::Number(number) = &*given else { continue };
        if compare_numbers(number, &limit).is_gt() {
            let from = input.clamped.get(name).and_then(|earlier| earlier.get("from")).cloned();
            let from = from.unwrap_or_else(|| given.clone());
            *given = Value::Number(limit.clone());
            let change = json!({ "from": from, "to": limit });
            let is_secret = input.prepared.has_secrets && redaction::is_write_only(&spec.json_schema, name);
            let change = if is_secret { redaction::REDACTED.into() } else { change };
            input.clamped.insert(name.to_owned(), change);
        }
    }
    Ok(())
}
