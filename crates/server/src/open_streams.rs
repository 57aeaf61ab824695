//! The open event streams of sessions and principals. Each holds a connection for as long as its client likes, so their
//! number is limited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_contract::Principal;

use crate::counters::decrement;
use crate::options::Limits;
use crate::problem::{Kind, Problem};

/// Counts the open streams.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams(Mutex<HashMap<Owner, usize>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    Session(String),
    Principal { org: Option<String>, id: String },
}

impl OpenStreams {
    /// Counts a stream of a principal, and of its session if it has one, unless one of them is at its limit.
    pub fn open(
        self: &Arc<Self>,
        principal: &Principal,
        session: Option<&str>,
        limits: &Limits,
    ) -> Result<OpenStream, Problem> {
        let mut stream = OpenStream { streams: Arc::clone(self), owners: Vec::with_capacity(2) };
        if let Some(session) = session {
            let (limit, setting) = (limits.streams_per_session, "max_streams_per_session");
            stream.count(Owner::Session(session.to_owned()), limit, setting)?;
        }
        let owner = Owner::Principal { org: principal.org.clone(), id: principal.id.clone() };
        stream.count(owner, limits.streams_per_principal, "max_streams_per_principal")?;
        Ok(stream)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Owner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<OpenStreams>,
    owners: Vec<Owner>,
}

impl OpenStream {
    fn count(&mut self, owner: Owner, limit: usize, setting: &str) -> Result<(), Problem> {
        let mut counts = self.streams.locked();
        let count = counts.get(&owner).copied().unwrap_or_default();
        if count >= limit {
            let noun = if matches!(owner, Owner::Session(_)) { "session" } else { "principal" };
            let detail = format!(
                "This {noun} has {count} open event streams; the limit is {limit} (`[server] {setting}`). Close one first."
            );
            return Err(Problem::new(Kind::TOO_MANY_REQUESTS, detail));
        }
        counts.insert(owner.clone(), count + 1);
        drop(counts);
        self.owners.push(owner);
        Ok(())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.locked();
        for owner in &self.owners {
            decrement(&mut counts, owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(id: &str) -> Principal {
        Principal { id: id.to_owned(), org: None, roles: Vec::new() }
    }

    #[test]
    fn sessions_and_principals_have_limits_of_their_own() {
        let streams = Arc::<OpenStreams>::default();
        let limits = Limits { streams_per_session: 2, streams_per_principal: 3, ..Limits::default() };
        let open = |who: &str, session| streams.open(&principal(who), session, &limits);
        let first = [open("mira", Some("s1")).unwrap(), open("mira", Some("s1")).unwrap()];
        let problem = |result: Result<OpenStream, Problem>| format!("{:?}", result.unwrap_err());
        assert!(problem(open("mira", Some("s1"))).contains("the limit is 2"));
        let _other = open("mira", Some("s2")).unwrap();
        assert!(problem(open("mira", None)).contains("`[server] max_streams_per_principal`"));
        assert!(problem(open("mira", Some("s3"))).contains("the limit is 3"));
        assert!(open("ivo", Some("s3")).is_ok(), "a refused stream is not counted for its session");
        drop(first);
        assert!(open("mira", Some("s1")).is_ok());
        assert_eq!(streams.locked().len(), 2, "counts of zero are removed");
    }
}
