//! The gate of the meters: refuses a call early that would exceed the limit of a meter. The claim charges them, and
//! decides.
//!
//! A new limit is a file with a `METER` beside this one, a line in [`METERS`], and its setting in the policy.

use toolwright_contract::{ErrorKind, Failure, ToolSpec};

use super::{GateInput, GateRefusal, retrieval};
use crate::policy::ModePolicy;
use crate::store::{Charge, MeterScope, Spent};

/// A counted allowance of a turn or a session.
pub(crate) struct Meter {
    pub name: &'static str,
    pub scope: MeterScope,
    /// The cost of a call of this tool.
    pub amount: fn(&ToolSpec) -> u32,
    pub limit: fn(&ModePolicy) -> u32,
    /// The refusal of a call that would exceed this limit.
    pub refusal: fn(u32) -> Failure,
}

/// What a session has spent of a meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterUse {
    pub meter: String,
    pub scope: MeterScope,
    pub spent: u32,
    /// `None`: this version has no such meter.
    pub limit: Option<u32>,
}

const METERS: &[Meter] = &[retrieval::METER];

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    let policy = input.mode_policy();
    match input.session.spent.exceeded(&charges(input.spec(), policy)) {
        Some(charge) if !input.is_charged => Err(exceeded(charge.meter, policy).into()),
        _ => Ok(()),
    }
}

/// The charges for a call of this tool.
pub(crate) fn charges(spec: &ToolSpec, policy: &ModePolicy) -> Vec<Charge> {
    let charge = |meter: &Meter| {
        let (amount, limit) = ((meter.amount)(spec), (meter.limit)(policy));
        (amount > 0).then_some(Charge { meter: meter.name, scope: meter.scope, amount, limit })
    };
    METERS.iter().filter_map(charge).collect()
}

/// All meters with their limits, those without a charge too; then meters that only another version knows.
pub(crate) fn uses(spent: &Spent, policy: &ModePolicy) -> Vec<MeterUse> {
    let known = METERS.iter().map(|meter| MeterUse {
        meter: meter.name.to_owned(),
        scope: meter.scope,
        spent: spent.get(meter.scope, meter.name),
        limit: Some((meter.limit)(policy)),
    });
    let is_known = |scope, name: &str| METERS.iter().any(|meter| meter.scope == scope && meter.name == name);
    let others = spent
        .iter()
        .filter(|(scope, name, _)| !is_known(*scope, name))
        .map(|(scope, name, spent)| MeterUse { meter: name.to_owned(), scope, spent, limit: None });
    known.chain(others).collect()
}

/// The refusal of a call that would exceed the limit of this meter.
pub(crate) fn exceeded(meter: &str, policy: &ModePolicy) -> Failure {
    match METERS.iter().find(|known| known.name == meter) {
        Some(known) => (known.refusal)((known.limit)(policy)),
        None => Failure::new(ErrorKind::BudgetExceeded, format!("The limit of `{meter}` is used up.")),
    }
}
