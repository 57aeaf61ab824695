//! Rate limits of a tool per client, and of all tools per org: a sliding window of calls. Counted per process: several
//! servers each allow the full number.
//!
//! A call takes a token of each limit, and returns them unless it is claimed or becomes a confirmation request: a call
//! that another gate refuses costs nothing.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_contract::{ErrorKind, Failure, RateLimit};

use super::{GateInput, Stop};

const SHARDS: usize = 64;
/// Expired windows are removed when a shard has more than this, and twice what remained after the last removal.
const SWEEP_ABOVE: usize = 256;

/// The calls of the current windows.
pub(crate) struct Rates(Vec<Mutex<Shard>>);

#[derive(Default)]
struct Shard {
    windows: HashMap<String, Window>,
    sweep_above: usize,
}

#[derive(Default)]
struct Window {
    calls: VecDeque<i64>,
    until: i64,
}

/// The tokens of one call. Dropped unspent, they are returned.
#[derive(Default)]
pub(crate) struct RateTokens(Option<TakenTokens>);

struct TakenTokens {
    rates: Arc<Rates>,
    keys: Vec<String>,
    at: i64,
}

pub(super) fn pass(input: &mut GateInput<'_>) -> Result<(), Stop> {
    if input.is_approved {
        // Counted when the confirmation request was made.
        return Ok(());
    }
    let (spec, session) = (input.spec(), input.session);
    let own = spec.permissions.as_ref().and_then(|permissions| permissions.rate_limit);
    let who = &session.principal;
    let org = who.org.as_deref().unwrap_or_default();
    let key = || format!("t\n{}\n{org:?}\n{:?}\n{}", spec.tool_id, who.id, session.client_id);
    let own = own.map(|limit| (key(), limit));
    let org = input.policy.org_rate.zip(session.principal.org.as_ref());
    let org = org.map(|(limit, org)| (format!("o\n{org}"), limit));
    if own.is_none() && org.is_none() {
        return Ok(());
    }
    let mut taken = TakenTokens { rates: Arc::clone(&input.rules.rates), keys: Vec::new(), at: input.now };
    for (key, limit) in own.into_iter().chain(org) {
        if let Err(wait) = taken.take(key, limit) {
            let message = format!("The rate limit of the tool `{}` is exceeded.", spec.tool_id);
            let seconds = (wait + 999) / 1000;
            let failure = Failure::new(ErrorKind::RateLimit, message);
            return Err(failure.suggest(format!("Wait {seconds} s before calling it again.")).into());
        }
    }
    input.rate_tokens = RateTokens(Some(taken));
    Ok(())
}

impl RateTokens {
    /// Counts the call: the tokens are not returned.
    pub fn spend(&mut self) {
        if let Some(mut taken) = self.0.take() {
            taken.keys.clear();
        }
    }
}

impl TakenTokens {
    /// Takes a token; the error is the number of milliseconds until there is one.
    fn take(&mut self, key: String, limit: RateLimit) -> Result<(), i64> {
        self.rates.shard(&key).take(&key, limit, self.at)?;
        self.keys.push(key);
        Ok(())
    }
}

impl Drop for TakenTokens {
    fn drop(&mut self) {
        for key in &self.keys {
            self.rates.shard(key).return_token(key, self.at);
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl Rates {
    fn shard(&self, key: &str) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.0[hasher.finish() as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn take(&mut self, key: &str, limit: RateLimit, now: i64) -> Result<(), i64> {
        if self.windows.len() > self.sweep_above.max(SWEEP_ABOVE) {
            self.windows.retain(|_, window| window.until > now);
            self.sweep_above = self.windows.len() * 2;
        }
        let length = i64::try_from(limit.window).unwrap_or(i64::MAX);
        if !self.windows.contains_key(key) {
            self.windows.insert(key.to_owned(), Window::default());
        }
        let Some(window) = self.windows.get_mut(key) else { return Ok(()) };
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
        let Some(window) = self.windows.get_mut(key) else { return };
        if let Some(place) = window.calls.iter().rposition(|call| *call == at) {
            window.calls.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(rates: &Arc<Rates>, at: i64, keys: &[(&str, u64)]) -> Result<RateTokens, i64> {
        let mut taken = TakenTokens { rates: Arc::clone(rates), keys: Vec::new(), at };
        for (key, calls) in keys {
            taken.take((*key).to_owned(), RateLimit { calls: *calls, window: 100 })?;
        }
        Ok(RateTokens(Some(taken)))
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
        let kept: usize = rates.0.iter().map(|shard| shard.lock().unwrap().windows.len()).sum();
        assert!(kept <= SHARDS * (SWEEP_ABOVE + 1), "{kept}");
    }
}
