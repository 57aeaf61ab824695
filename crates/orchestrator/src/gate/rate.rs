//! How often a tool may be called by a client, and anything by an org: at most so many calls in any window. Counted in
//! this process; several servers each allow the full number.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use toolwright_contract::{ErrorKind, Failure, RateLimit};

use super::{Attempt, Stop};

/// Keys are dropped when there are more than this and their windows are over.
const SWEEP_ABOVE: usize = 10_000;

/// The calls of the last windows.
#[derive(Default)]
pub(crate) struct Rates(Mutex<HashMap<String, Window>>);

#[derive(Default)]
struct Window {
    calls: VecDeque<i64>,
    until: i64,
}

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    if attempt.is_approved {
        // Counted when the person was asked.
        return Ok(());
    }
    let (spec, session) = (attempt.spec(), attempt.session);
    let own = spec.permissions.as_ref().and_then(|permissions| permissions.rate_limit);
    let own = own.map(|limit| (format!("t\n{}\n{}", spec.tool_id, session.client_id), limit));
    let org = attempt.policy.org_rate.zip(session.principal.org.as_ref());
    let org = org.map(|(limit, org)| (format!("o\n{org}"), limit));
    for (key, limit) in own.into_iter().chain(org) {
        if let Err(wait) = attempt.rules.rates.spend(key, limit, attempt.now) {
            let message = format!("The tool `{}` is called too often.", spec.tool_id);
            let seconds = (wait + 999) / 1000;
            let failure = Failure::new(ErrorKind::RateLimit, message);
            return Err(failure.suggest(format!("Wait {seconds} s before calling it again.")).into());
        }
    }
    Ok(())
}

impl Rates {
    /// Counts a call, or says in how many milliseconds it may come.
    fn spend(&self, key: String, limit: RateLimit, now: i64) -> Result<(), i64> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() > SWEEP_ABOVE {
            windows.retain(|_, window| window.until > now);
        }
        let length = i64::try_from(limit.window).unwrap_or(i64::MAX);
        let window = windows.entry(key).or_default();
        while window.calls.front().is_some_and(|at| at.saturating_add(length) <= now) {
            window.calls.pop_front();
        }
        match window.calls.front() {
            Some(first) if window.calls.len() as u64 >= limit.calls => {
                Err(first.saturating_add(length) - now)
            }
            None if limit.calls == 0 => Err(length),
            _ => {
                window.calls.push_back(now);
                window.until = now.saturating_add(length);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_window_holds_at_most_the_limit() {
        let (rates, limit) = (Rates::default(), RateLimit { calls: 2, window: 100 });
        let spend = |now| rates.spend("k".to_owned(), limit, now);
        assert_eq!([spend(0), spend(60), spend(99)], [Ok(()), Ok(()), Err(1)]);
        assert_eq!([spend(100), spend(101), spend(160)], [Ok(()), Err(59), Ok(())]);
        assert_eq!(rates.spend("other".to_owned(), limit, 160), Ok(()));
    }
}
