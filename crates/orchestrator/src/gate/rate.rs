//! How often a tool may be called by a client, and anything by an org: at most so many calls in any window. Counted in
//! this process; several servers each allow the full number.
//!
//! A call takes a token of each limit on its way through the gates, and gives them back unless it is claimed or a person
//! is asked: what another gate refuses has cost nothing.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_contract::{ErrorKind, Failure, RateLimit};

use super::{Attempt, Stop};

const SHARDS: usize = 64;
/// Windows that are over are dropped when a shard has more than this, and twice what it had after the last time.
const SWEEP_ABOVE: usize = 256;

/// The calls of the last windows.
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

/// What a call has taken. Dropped, it is given back.
#[derive(Default)]
pub(crate) struct Tokens(Option<Taken>);

struct Taken {
    rates: Arc<Rates>,
    keys: Vec<String>,
    at: i64,
}

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    if attempt.is_approved {
        // Counted when the person was asked.
        return Ok(());
    }
    let (spec, session) = (attempt.spec(), attempt.session);
    let own = spec.permissions.as_ref().and_then(|permissions| permissions.rate_limit);
    let who = &session.principal;
    let org = who.org.as_deref().unwrap_or_default();
    let key = || format!("t\n{}\n{org:?}\n{:?}\n{}", spec.tool_id, who.id, session.client_id);
    let own = own.map(|limit| (key(), limit));
    let org = attempt.policy.org_rate.zip(session.principal.org.as_ref());
    let org = org.map(|(limit, org)| (format!("o\n{org}"), limit));
    if own.is_none() && org.is_none() {
        return Ok(());
    }
    let mut taken = Taken { rates: Arc::clone(&attempt.rules.rates), keys: Vec::new(), at: attempt.now };
    for (key, limit) in own.into_iter().chain(org) {
        if let Err(wait) = taken.take(key, limit) {
            let message = format!("The tool `{}` is called too often.", spec.tool_id);
            let seconds = (wait + 999) / 1000;
            let failure = Failure::new(ErrorKind::RateLimit, message);
            return Err(failure.suggest(format!("Wait {seconds} s before calling it again.")).into());
        }
    }
    attempt.tokens = Tokens(Some(taken));
    Ok(())
}

impl Tokens {
    /// The call counts.
    pub fn spend(&mut self) {
        if let Some(mut taken) = self.0.take() {
            taken.keys.clear();
        }
    }
}

impl Taken {
    /// Takes a token, or says in how many milliseconds there is one.
    fn take(&mut self, key: String, limit: RateLimit) -> Result<(), i64> {
        self.rates.shard(&key).take(&key, limit, self.at)?;
        self.keys.push(key);
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for key in &self.keys {
            self.rates.shard(key).give_back(key, self.at);
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

    fn give_back(&mut self, key: &str, at: i64) {
        let Some(window) = self.windows.get_mut(key) else { return };
        if let Some(place) = window.calls.iter().rposition(|call| *call == at) {
            window.calls.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(rates: &Arc<Rates>, at: i64, keys: &[(&str, u64)]) -> Result<Tokens, i64> {
        let mut taken = Taken { rates: Arc::clone(rates), keys: Vec::new(), at };
        for (key, calls) in keys {
            taken.take((*key).to_owned(), RateLimit { calls: *calls, window: 100 })?;
        }
        Ok(Tokens(Some(taken)))
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
    fn what_was_not_spent_is_given_back() {
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
    fn windows_that_are_over_are_dropped() {
        let rates = Arc::<Rates>::default();
        for now in 0..200_000 {
            spend(&rates, now, &[(&format!("client {now}"), 1)]).unwrap();
        }
        let kept: usize = rates.0.iter().map(|shard| shard.lock().unwrap().windows.len()).sum();
        assert!(kept <= SHARDS * (SWEEP_ABOVE + 1), "{kept}");
    }
}
