//! Rate limits of a tool per principal, and of all tools per org: a sliding window of calls. Counted per process:
//! several servers each allow the full number. A principal that speaks for clients has one window for each of them; any
//! other cannot escape its window by another client id.
//!
//! A call takes a token of each limit, and returns them unless it is claimed or becomes a confirmation request: a call
//! that another gate refuses costs nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_contract::{ErrorKind, Failure, RateLimit, SPEAKS_FOR_CLIENTS};

use super::{GateInput, GateRefusal};

/// Expired windows are removed when there are more than this, and twice what remained after the last removal.
const SWEEP_ABOVE: usize = 4096;

/// The calls of the current windows.
#[derive(Default)]
pub(crate) struct Rates(Mutex<Windows>);

#[derive(Default)]
struct Windows {
    by_key: HashMap<String, Window>,
    sweep_above: usize,
}

#[derive(Default)]
struct Window {
    calls: VecDeque<i64>,
    until: i64,
}

/// The tokens of one call. Dropped unspent, they are returned.
#[derive(Default)]
pub(crate) struct RateTokens {
    /// The window of each: its table and key.
    taken: Vec<(Arc<Rates>, String)>,
    at: i64,
}

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    if input.is_approved {
        // Counted when the confirmation request was made.
        return Ok(());
    }
    let (spec, session) = (input.spec(), input.session);
    let own = spec.permissions.as_ref().and_then(|permissions| permissions.rate_limit);
    let who = &session.principal;
    let org = who.org.as_deref().unwrap_or_default();
    let client = if who.has_role(SPEAKS_FOR_CLIENTS) { &session.client_id } else { "" };
    let key = || format!("t\n{}\n{org:?}\n{:?}\n{client}", spec.tool_id, who.id);
    let own = own.map(|limit| (key(), limit, format!("the tool `{}`", spec.tool_id)));
    let org = input.policy.org_rate.zip(session.principal.org.as_ref());
    let org =
        org.map(|(limit, org)| (format!("o\n{org}"), limit, "the user's org, over all tools,".to_owned()));
    let mut tokens = RateTokens { taken: Vec::new(), at: input.now };
    for (key, limit, name) in own.into_iter().chain(org) {
        if let Err(wait) = tokens.take(&input.rules.rates, key, limit) {
            let RateLimit { calls, window } = limit;
            let message = format!("The rate limit of {name} is exceeded: {calls} calls in {window} ms.");
            let seconds = (wait + 999) / 1000;
            let failure = Failure::new(ErrorKind::RateLimit, message).retry_after(wait.unsigned_abs());
            return Err(failure.suggest(format!("Wait {seconds} s before calling it again.")).into());
        }
    }
    input.rate_tokens = tokens;
    Ok(())
}

impl RateTokens {
    /// Counts the call: the tokens are not returned.
    pub fn spend(&mut self) {
        self.taken.clear();
    }

    /// Takes a token; the error is the number of milliseconds until there is one.
    fn take(&mut self, rates: &Arc<Rates>, key: String, limit: RateLimit) -> Result<(), i64> {
        rates.windows().take(&key, limit, self.at)?;
        self.taken.push((Arc::clone(rates), key));
        Ok(())
    }
}

impl Drop for RateTokens {
    fn drop(&mut self) {
        for (rates, key) in &self.taken {
            rates.windows().return_token(key, self.at);
        }
    }
}

impl Rates {
    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Windows {
    fn take(&mut self, key: &str, limit: RateLimit, now: i64) -> Result<(), i64> {
        if self.by_key.len() > self.sweep_above.max(SWEEP_ABOVE) {
            self.by_key.retain(|_, window| window.until > now);
            self.sweep_above = self.by_key.len() * 2;
        }
        let length = i64::try_from(limit.window).unwrap_or(i64::MAX);
        let window = self.by_key.entry(key.to_owned()).or_default();
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

    fn return_token(&mut self, key: &str, at: i64) {
        let Some(window) = self.by_key.get_mut(key) else { return };
        if let Some(place) = window.calls.iter().rposition(|call| *call == at) {
            window.calls.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(rates: &Arc<Rates>, at: i64, keys: &[(&str, u64)]) -> Result<RateTokens, i64> {
        let mut tokens = RateTokens { taken: Vec::new(), at };
        for (key, calls) in keys {
            tokens.take(rates, (*key).to_owned(), RateLimit { calls: *calls, window: 100 })?;
        }
        Ok(tokens)
    }

    fn spend(rates: &Arc<Rates>, at: i64, keys: &[(&str, u64)]) -> Result<(), i64> {
        limited(rates, at, keys).map(|mut tokens| tokens.spend())
    }

    #[test]
    fn any_window_holds_at_most_the_limit() {
        let rates = Arc::<Rates>::default();
        let spend = |now| spend(&rates, now, &[("k", 2)]);
        assert_eq!([spend(0), spend(60), spend(99)], [Ok(()), Ok(()), Err(1)]);
        assert_eq!([spend(100), spend(101), spend(160)], [Ok(()), Err(59), Ok(())]);
        assert_eq!(super::tests::spend(&rates, 160, &[("other", 2)]), Ok(()));
    }

    #[test]
    fn unspent_tokens_are_returned() {
        let rates = Arc::<Rates>::default();
        for now in 0..10 {
            drop(limited(&rates, now, &[("k", 1)]).unwrap());
        }
        assert_eq!(spend(&rates, 10, &[("k", 1)]), Ok(()));
        // Another limit refuses: this one is untouched.
        assert_eq!(spend(&rates, 11, &[("mine", 1), ("k", 1)]), Err(99));
        assert_eq!(spend(&rates, 12, &[("mine", 1)]), Ok(()));
    }

    #[test]
    fn expired_windows_are_removed() {
        let rates = Arc::<Rates>::default();
        for now in 0..200_000 {
            spend(&rates, now, &[(&format!("client {now}"), 1)]).unwrap();
        }
        let remaining = rates.windows().by_key.len();
        assert!(remaining <= SWEEP_ABOVE + 1, "{remaining}");
    }
}
