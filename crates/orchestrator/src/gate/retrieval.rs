//! The limit of retrieval calls per turn.

use toolwright_contract::{Category, ErrorKind, Failure, ToolSpec};

use super::meters::Meter;
use crate::store::{MeterScope, RETRIEVAL_METER};

pub(super) const METER: Meter = Meter {
    name: RETRIEVAL_METER,
    scope: MeterScope::Turn,
    amount: |spec| u32::from(is_retrieval(spec)),
    limit: |policy| policy.limits.retrieval_calls,
    refusal,
};

pub(crate) fn is_retrieval(spec: &ToolSpec) -> bool {
    spec.category == Category::Retrieval
}

fn refusal(limit: u32) -> Failure {
    let message = format!("This turn has used up its {limit} retrieval calls.");
    Failure::new(ErrorKind::BudgetExceeded, message)
        .suggest("Answer with what you have found so far, or ask the user to narrow the question.")
}
