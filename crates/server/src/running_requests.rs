//! The running requests of each principal: one of them cannot use up the server's requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolwright_contract::Principal;

use crate::counters::decrement;
use crate::problem::{Kind, Problem};

/// Counts the running requests, by org and id of their principals.
#[derive(Debug, Default)]
pub(crate) struct RunningRequests(Mutex<HashMap<Owner, usize>>);

type Owner = (Option<String>, String);

impl RunningRequests {
    /// Counts a request until the guard is dropped, unless its principal is at the limit.
    pub fn begin(&self, principal: &Principal, limit: usize) -> Result<RunningRequest<'_>, Problem> {
        let owner = (principal.org.clone(), principal.id.clone());
        let mut counts = self.locked();
        let count = counts.entry(owner.clone()).or_default();
        if *count >= limit {
            let detail = format!(
                "This principal has {limit} running requests, and may have no more (`[server] max_requests_per_principal`)."
            );
            return Err(Problem::new(Kind::TOO_MANY_REQUESTS, detail));
        }
        *count += 1;
        drop(counts);
        Ok(RunningRequest { requests: self, owner })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Owner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest<'a> {
    requests: &'a RunningRequests,
    owner: Owner,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        decrement(&mut self.requests.locked(), &self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_counted_until_its_requests_end() {
        let requests = RunningRequests::default();
        let principal = |id: &str| Principal { id: id.to_owned(), org: None, roles: Vec::new() };
        let (mira, jon) = (principal("mira"), principal("jon"));
        let first = requests.begin(&mira, 2).unwrap();
        let _second = requests.begin(&mira, 2).unwrap();
        assert!(requests.begin(&mira, 2).is_err());
        assert!(requests.begin(&jon, 2).is_ok());
        drop(first);
        assert!(requests.begin(&mira, 2).is_ok());
        assert_eq!(requests.locked().len(), 1);
    }
}
