//! Numbers that policy or the tool itself holds down: the call goes on with less, and says so in `meta.clamped`.

use serde_json::{Number, Value, json};
use toolwright_contract::Category;

use super::{Attempt, Stop};
use crate::redact;

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let spec = &attempt.prepared.tool.spec;
    let own = spec.clamp.get(&attempt.session.mode);
    let mut limits: Vec<(&str, Number)> =
        own.into_iter().flatten().map(|(name, most)| (name.as_str(), most.clone())).collect();
    if spec.category == Category::Retrieval {
        limits.push(("top_k", attempt.mode_policy().top_k.into()));
    }
    for (name, most) in limits {
        let Some(given) = attempt.args.get_mut(name) else { continue };
        let (Some(number), Some(bound)) = (given.as_f64(), most.as_f64()) else { continue };
        if number > bound {
            let from = attempt.clamped.get(name).and_then(|earlier| earlier.get("from")).cloned();
            let from = from.unwrap_or_else(|| given.clone());
            *given = Value::Number(most.clone());
            let told = json!({ "from": from, "to": most });
            let is_secret = attempt.prepared.has_secrets && redact::hides(&spec.json_schema, name);
            let told = if is_secret { redact::HIDDEN.into() } else { told };
            attempt.clamped.insert(name.to_owned(), told);
        }
    }
    Ok(())
}
