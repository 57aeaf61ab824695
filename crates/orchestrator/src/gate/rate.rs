//! Rate limits of a tool per principal, and of all tools per org: a sliding window of calls, which all servers of a
//! store share. A principal that speaks for clients has one window for each of them; any other cannot escape its window
//! by another client id.
//!
//! The gate notes which limits a call counts for. It counts when it is claimed, or when it becomes a confirmation
//! request: a call that another gate refuses costs nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolwright_contract::{ErrorKind, Failure, RateLimit, SPEAKS_FOR_CLIENTS};

use super::{GateInput, GateRefusal};
use crate::store::{RateCharge, RateExceeded};

/// Refusals that are over are removed when there are more than this.
const SWEEP_ABOVE: usize = 4096;

/// The limits that a call counts for. Unlike the store, it has their names.
#[derive(Default)]
pub(crate) struct CallRates {
    pub charges: Vec<RateCharge>,
    names: Vec<String>,
}

/// Limits that the store has found used up, and until when. Calls before that time are refused without asking the
/// store; that a counted call may be taken back meanwhile does not matter.
#[derive(Default)]
pub(crate) struct KnownRefusals(Mutex<HashMap<String, i64>>);

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    if input.is_approved || input.is_charged {
        // Counted when the confirmation request was made, or when it was first claimed.
        return Ok(());
    }
    let (spec, session) = (input.spec(), input.session);
    let own = spec.permissions.as_ref().and_then(|permissions| permissions.rate_limit);
    let org = input.policy.org_rate.zip(session.principal.org.as_ref());
    if own.is_none() && org.is_none() {
        return Ok(());
    }
    let who = &session.principal;
    let org_name = who.org.as_deref().unwrap_or_default();
    let client = if who.has_role(SPEAKS_FOR_CLIENTS) { &session.client_id } else { "" };
    let key = || format!("t\n{}\n{org_name:?}\n{:?}\n{client:?}", spec.tool_id, who.id);
    let own = own.map(|limit| (key(), limit, format!("the tool `{}`", spec.tool_id)));
    let org =
        org.map(|(limit, org)| (format!("o\n{org:?}"), limit, "the user's org, over all tools,".to_owned()));
    let mut rates = CallRates::default();
    for (key, RateLimit { calls, window }, name) in own.into_iter().chain(org) {
        rates.charges.push(RateCharge::new(key, calls, window));
        rates.names.push(name);
    }
    if let Some(known) = input.rules.known_refusals.find(&rates.charges, input.now) {
        return Err(rates.refusal(known).into());
    }
    input.rates = rates;
    Ok(())
}

impl CallRates {
    /// The refusal of a call for which the store has found a limit used up.
    pub fn refuse(&self, exceeded: RateExceeded, refusals: &KnownRefusals, now: i64) -> Failure {
        if let Some(charge) = self.charges.get(exceeded.place) {
            refusals.add(&charge.key, now, exceeded.wait_ms);
        }
        self.refusal(exceeded)
    }

    fn refusal(&self, RateExceeded { place, wait_ms }: RateExceeded) -> Failure {
        let name = self.names.get(place).map_or("this call", String::as_str);
        let limit = self.charges.get(place).map_or((0, 0), |charge| (charge.calls, charge.window_ms));
        let message = format!("The rate limit of {name} is exceeded: {} calls in {} ms.", limit.0, limit.1);
        let failure = Failure::new(ErrorKind::RateLimit, message).retry_after(wait_ms.unsigned_abs());
        failure.suggest(format!("Wait {} s before calling it again.", wait_ms.saturating_add(999) / 1000))
    }
}

impl KnownRefusals {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, charges: &[RateCharge], now: i64) -> Option<RateExceeded> {
        let until = self.lock();
        if until.is_empty() {
            return None;
        }
        let wait =
            |charge: &RateCharge| until.get(&charge.key).map(|until| until - now).filter(|wait| *wait > 0);
        let mut waits = charges.iter().map(wait).enumerate();
        waits.find_map(|(place, wait)| wait.map(|wait_ms| RateExceeded { place, wait_ms }))
    }

    fn add(&self, key: &str, now: i64, wait_ms: i64) {
        let mut until = self.lock();
        if until.len() >= SWEEP_ABOVE {
            until.retain(|_, until| *until > now);
            if until.len() >= SWEEP_ABOVE {
                // The store decides about the others.
                return;
            }
        }
        until.insert(key.to_owned(), now.saturating_add(wait_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_refusal_lasts_until_its_time() {
        let refusals = KnownRefusals::default();
        let charge = |key: &str| RateCharge::new(key.to_owned(), 1, 100);
        let both = [charge("mine"), charge("org")];
        assert_eq!(refusals.find(&both, 0), None);
        refusals.add("org", 10, 50);
        assert_eq!(refusals.find(&both, 59), Some(RateExceeded { place: 1, wait_ms: 1 }));
        assert_eq!(refusals.find(&both[..1], 59), None);
        assert_eq!(refusals.find(&both, 60), None);
    }

    #[test]
    fn known_refusals_take_bounded_memory() {
        let refusals = KnownRefusals::default();
        for now in 0..100_000 {
            refusals.add(&format!("client {now}"), now, 100_000);
        }
        assert_eq!(refusals.lock().len(), SWEEP_ABOVE);
        refusals.add("later", 300_000, 1);
        assert_eq!(refusals.lock().len(), 1);
    }
}
