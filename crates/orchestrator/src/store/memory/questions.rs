//! The questions to people, in memory.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::store::KEPT_FOR_MS;
use crate::store::records::{Answer, Confirmation};

#[derive(Default)]
pub struct Questions {
    by_id: HashMap<String, Arc<Confirmation>>,
    /// The pending ones and the approved ones, oldest first.
    open: BTreeSet<(i64, String)>,
    /// The newest of each call.
    by_call: HashMap<(String, String), String>,
}

impl Questions {
    pub fn get(&self, id: &str) -> Option<&Arc<Confirmation>> {
        self.by_id.get(id)
    }

    /// The newest question about this call.
    pub fn about(&self, session: &str, execution: &str) -> Option<&Arc<Confirmation>> {
        let call = (session.to_owned(), execution.to_owned());
        self.by_call.get(&call).and_then(|id| self.by_id.get(id))
    }

    pub fn put(&mut self, asked: Arc<Confirmation>) {
        let key = (asked.created_at, asked.id.clone());
        match asked.answer {
            Answer::Pending | Answer::Approved => {
                self.open.insert(key);
                let call = (asked.session.clone(), asked.execution.clone());
                self.by_call.insert(call, asked.id.clone());
            }
            Answer::Rejected | Answer::Expired | Answer::Used => {
                self.open.remove(&key);
            }
        }
        self.by_id.insert(asked.id.clone(), asked);
    }

    /// Goes back from `now` to what was there before, if `now` is still what is there.
    pub fn put_back(&mut self, now: &Arc<Confirmation>, before: Option<Arc<Confirmation>>) {
        if !self.by_id.get(&now.id).is_some_and(|current| Arc::ptr_eq(current, now)) {
            return;
        }
        match before {
            Some(before) => self.put(before),
            None => self.remove(&now.id),
        }
    }

    pub fn open(&self, answer: Answer) -> impl Iterator<Item = &Arc<Confirmation>> {
        let open = self.open.iter().filter_map(|(_, id)| self.by_id.get(id));
        open.filter(move |asked| asked.answer == answer)
    }

    /// Drops the questions of these sessions, and those that were closed a day ago or longer; gives their ids.
    pub fn forget(&mut self, sessions: &HashSet<String>, now: i64) -> Vec<String> {
        let is_over = |asked: &Confirmation| {
            let is_open = matches!(asked.answer, Answer::Pending | Answer::Approved);
            !is_open && now.saturating_sub(asked.expires_at) >= KEPT_FOR_MS
        };
        let wanted = |asked: &&Arc<Confirmation>| sessions.contains(&asked.session) || is_over(asked);
        let ids: Vec<_> = self.by_id.values().filter(wanted).map(|asked| asked.id.clone()).collect();
        for id in &ids {
            self.remove(id);
        }
        ids
    }

    fn remove(&mut self, id: &str) {
        let Some(asked) = self.by_id.remove(id) else { return };
        self.open.remove(&(asked.created_at, asked.id.clone()));
        let call = (asked.session.clone(), asked.execution.clone());
        if self.by_call.get(&call).is_some_and(|newest| newest == id) {
            self.by_call.remove(&call);
        }
    }
}
