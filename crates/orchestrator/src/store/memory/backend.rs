//! The store's operations, in memory.

use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::claiming::Decided;
use super::held::{Held, Stage};
use super::{Memory, locked};
use crate::store::journal::{Change, Forgotten, Journal, Line, Written};
use crate::store::records::{
    Answer, AuditEntry, AuditRow, Claim, Claimed, Confirmation, Decision, Durability, SessionRecord,
    SessionStanding, Settled, Settlement, Standing, Status, Swept,
};
use crate::store::{Backend, Error, Result};

impl<J: Journal> Backend for Memory<J> {
    async fn create_session(&self, session: SessionRecord) -> Result<()> {
        let record = Arc::new(session);
        let written = match self.shard(&record.id).entry(record.id.clone()) {
            Entry::Occupied(_) => return Err(Error::Exists(record.id.clone())),
            Entry::Vacant(free) => {
                free.insert(Held::new(Arc::clone(&record)));
                self.journal.write(Change::Session(Arc::clone(&record)), Durability::Committed)
            }
        };
        let written = written.wait().await;
        if written.is_err()
            && let Entry::Occupied(known) = self.shard(&record.id).entry(record.id.clone())
            && Arc::ptr_eq(&known.get().record, &record)
        {
            known.remove();
        }
        written
    }

    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>> {
        Ok(self.shard(id).get_mut(id).map(Held::current))
    }

    async fn begin_turn(&self, id: &str, _now: i64) -> Result<Arc<SessionRecord>> {
        let (record, written) = {
            let mut shard = self.shard(id);
            let held = shard.get_mut(id).ok_or_else(|| Error::NoSession(id.to_owned()))?;
            held.retrievals = 0;
            let record = Arc::make_mut(&mut held.record);
            record.turn += 1;
            record.retrievals = 0;
            let change = Change::Session(Arc::clone(&held.record));
            (Arc::clone(&held.record), self.journal.write(change, Durability::Relaxed))
        };
        written.wait().await.map(|()| record)
    }

    async fn update_session(&self, session: &SessionRecord) -> Result<bool> {
        let (before, after, written) = {
            let mut shard = self.shard(&session.id);
            let held = shard.get_mut(&session.id).ok_or_else(|| Error::NoSession(session.id.clone()))?;
            let before = held.current();
            if before.revision != session.revision {
                return Ok(false);
            }
            let SessionRecord { turn, retrievals, revision, .. } = *before;
            let revision = revision + 1;
            let after = Arc::new(SessionRecord { turn, retrievals, revision, ..session.clone() });
            held.record = Arc::clone(&after);
            let change = Change::Session(Arc::clone(&after));
            (before, after, self.journal.write(change, Durability::Committed))
        };
        let written = written.wait().await;
        if written.is_err()
            && let Some(held) = self.shard(&session.id).get_mut(&session.id)
            && Arc::ptr_eq(&held.record, &after)
        {
            held.record = before;
        }
        written.map(|()| true)
    }

    async fn recorded(&self, session: &str, execution: &str) -> Result<Option<Standing>> {
        let mut others = Vec::new();
        loop {
            let call = {
                let shard = self.shard(session);
                let Some(held) = shard.get(session) else { return Ok(None) };
                if let Some(known) = held.executions.get(execution) {
                    return Ok(Some(known.standing()));
                }
                let Some(call) = held.stored.with_id(execution, &others).next() else { return Ok(None) };
                call
            };
            let standing = self.stored(session, execution, call).await?;
            if standing.is_some() {
                return Ok(standing);
            }
            others.push(call.number);
        }
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let claim = Arc::new(claim);
        let mut others = Vec::new();
        loop {
            match self.decide_claim(&claim, &others)? {
                Decided::Known(answer) => return Ok(answer),
                Decided::Stored(call) => match self.stored(&claim.session, &claim.execution, call).await? {
                    None => others.push(call.number),
                    Some(standing) if standing.digest != claim.digest => return Ok(Claimed::Conflict),
                    Some(Standing { status: Status::Finished(envelope), .. }) => {
                        return Ok(Claimed::Finished(envelope));
                    }
                    // It has become an orphan, which may be claimed anew.
                    Some(_) => {}
                },
                Decided::New(written, taken) => {
                    written.wait().await?;
                    return Ok(taken.owned());
                }
            }
        }
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled> {
        let Settlement { session, execution, envelope, audit, durability, .. } = settlement;
        let text = self.journal.text(&envelope)?;
        let (bytes, audit) = (text.len(), Line::of(&audit));
        let written = {
            let mut shard = self.shard(&session);
            let held = shard.get_mut(&session).ok_or_else(|| Error::NoSession(session.clone()))?;
            held.executions.get_mut(&*execution).filter(|known| known.is_unsettled()).map(|known| {
                let change = Change::Settled { number: known.number, envelope: text, audit };
                let written = self.journal.write(change, durability);
                known.stage = match durability {
                    Durability::Committed if !written.is_now() => Stage::Settling(envelope),
                    _ => Stage::Finished(envelope),
                };
                written
            })
        };
        let Some(written) = written else { return self.settled_earlier(&session, &execution).await };
        if written.is_now() {
            self.remember(&session, &execution, bytes);
            return Ok(Settled::First);
        }
        let mut settling =
            Settling { memory: self, session: &session, execution: &execution, bytes, has_failed: false };
        let written = written.wait().await;
        settling.has_failed = written.is_err();
        written.map(|()| Settled::First)
    }

    async fn release(&self, session: &str, execution: &str) -> Result<()> {
        // On disk it stays a claim without an end, which says the same.
        self.with_execution(session, execution, |known| {
            if known.idempotent && matches!(known.stage, Stage::Running) {
                known.stage = Stage::Orphaned;
            }
        });
        Ok(())
    }

    async fn ask(&self, confirmation: Confirmation) -> Result<Arc<Confirmation>> {
        let (before, asked, written) = {
            let mut questions = self.questions();
            let waits = |earlier: &&Arc<Confirmation>| {
                earlier.answer == Answer::Pending && confirmation.created_at < earlier.expires_at
            };
            let before =
                questions.about(&confirmation.session, &confirmation.execution).filter(waits).cloned();
            let asked = match &before {
                Some(earlier) => Arc::new(earlier.renewed(&confirmation)),
                None => Arc::new(confirmation),
            };
            questions.put(Arc::clone(&asked));
            let change = Change::Confirmation(Arc::clone(&asked));
            (before, asked, self.journal.write(change, Durability::Committed))
        };
        self.asked(before, asked, written).await
    }

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<Confirmation>>> {
        Ok(self.questions().get(id).cloned())
    }

    async fn pending(&self, session: Option<&str>) -> Result<Vec<Arc<Confirmation>>> {
        let wanted = |asked: &&Arc<Confirmation>| session.is_none_or(|session| asked.session == session);
        Ok(self.questions().open(Answer::Pending).filter(wanted).cloned().collect())
    }

    async fn decide(&self, id: &str, decision: Decision, now: i64) -> Result<Option<Arc<Confirmation>>> {
        let (before, decided, written) = {
            let mut questions = self.questions();
            let waits =
                |asked: &&Arc<Confirmation>| asked.answer == Answer::Pending && now < asked.expires_at;
            let Some(before) = questions.get(id).filter(waits).cloned() else { return Ok(None) };
            let decided = Arc::new(before.decided(decision));
            questions.put(Arc::clone(&decided));
            let change = Change::Confirmation(Arc::clone(&decided));
            (before, decided, self.journal.write(change, Durability::Committed))
        };
        self.asked(Some(before), decided, written).await.map(Some)
    }

    async fn approved(&self) -> Result<Vec<Arc<Confirmation>>> {
        Ok(self.questions().open(Answer::Approved).cloned().collect())
    }

    async fn append(&self, entry: AuditEntry) -> Result<()> {
        self.journal.write(Change::Audit(Line::of(&entry)), Durability::Relaxed).wait().await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        self.journal.audit(after, limit).await
    }

    async fn sweep(&self, now: i64) -> Result<Swept> {
        let (sessions, gone) = self.sweep_sessions(now);
        let questions = self.sweep_questions(now, &gone);
        Ok(Swept { sessions, questions })
    }

    async fn over(&self, sessions: &[String], now: i64) -> Result<Vec<String>> {
        let goes_on = |id: &str| {
            let shard = self.shard(id);
            shard.get(id).is_some_and(|held| held.record.standing_at(now) == SessionStanding::Active)
        };
        Ok(sessions.iter().filter(|id| !goes_on(id)).cloned().collect())
    }

    async fn is_kept(&self, toolset: &str) -> Result<bool> {
        let keeps =
            |held: &Held| held.record.standing == SessionStanding::Active && held.record.toolset == toolset;
        Ok(self.shards.iter().any(|shard| locked(shard).values().any(keeps)))
    }

    async fn flush(&self) -> Result<()> {
        self.journal.flush().wait().await
    }
}

impl<J: Journal> Memory<J> {
    /// Waits until a question is on disk as it is now; goes back if it does not get there.
    async fn asked(
        &self,
        before: Option<Arc<Confirmation>>,
        asked: Arc<Confirmation>,
        written: Written,
    ) -> Result<Arc<Confirmation>> {
        match written.wait().await {
            Ok(()) => Ok(asked),
            Err(error) => {
                self.questions().put_back(&asked, before);
                Err(error)
            }
        }
    }

    /// The settlement that stands, once it is on disk.
    async fn settled_earlier(&self, session: &str, execution: &str) -> Result<Settled> {
        self.journal.caught_up().wait().await?;
        let settling = self.with_execution(session, execution, |known| match &known.stage {
            Stage::Settling(envelope) => Some(Arc::clone(envelope)),
            _ => None,
        });
        if let Some(envelope) = settling.flatten() {
            return Ok(Settled::Earlier(envelope));
        }
        match self.recorded(session, execution).await?.map(|standing| standing.status) {
            Some(Status::Finished(envelope)) => Ok(Settled::Earlier(envelope)),
            // It was lost on its way to the disk.
            Some(_) => Err(Error::Unavailable("an earlier settlement failed".to_owned())),
            None => Ok(Settled::Unclaimed),
        }
    }

    /// Says how many sessions have ended, and which are gone.
    fn sweep_sessions(&self, now: i64) -> (usize, HashSet<String>) {
        let mut expired = 0;
        let mut gone = HashSet::new();
        for shard in &self.shards {
            locked(shard).retain(|id, held| {
                let standing = held.record.standing_at(now);
                if held.record.standing != standing {
                    held.current();
                    let record = Arc::make_mut(&mut held.record);
                    record.standing = standing;
                    record.revision += 1;
                    self.note(Change::Session(Arc::clone(&held.record)));
                    expired += 1;
                }
                let is_gone = held.is_gone(now);
                let executions = match is_gone {
                    true => held.numbers().collect(),
                    false => held.forget(now),
                };
                let session = is_gone.then(|| id.clone());
                gone.extend(session.clone());
                self.forget(Forgotten { session, executions, questions: Vec::new() });
                !is_gone
            });
        }
        (expired, gone)
    }

    fn sweep_questions(&self, now: i64, gone: &HashSet<String>) -> Vec<Arc<Confirmation>> {
        let mut questions = self.questions();
        let is_late = |asked: &&Arc<Confirmation>| asked.expires_at <= now;
        let late = questions.open(Answer::Pending).filter(is_late);
        let late: Vec<_> = late.map(|asked| Arc::new(asked.closed(Answer::Expired))).collect();
        for expired in &late {
            questions.put(Arc::clone(expired));
            self.note(Change::Confirmation(Arc::clone(expired)));
        }
        let questions = questions.forget(gone, now);
        self.forget(Forgotten { questions, ..Forgotten::default() });
        late
    }

    fn forget(&self, forgotten: Forgotten) {
        if !forgotten.is_empty() {
            self.note(Change::Forgotten(forgotten));
        }
    }

    /// Writes what nobody waits for: a later sweep does again what was lost.
    fn note(&self, change: Change) {
        drop(self.journal.write(change, Durability::Relaxed));
    }
}

/// A settlement on its way to the disk, until it is dropped. When nobody waits for it any more it counts as finished: it
/// gets there in its own time.
struct Settling<'a, J: Journal> {
    memory: &'a Memory<J>,
    session: &'a str,
    execution: &'a str,
    bytes: usize,
    has_failed: bool,
}

impl<J: Journal> Drop for Settling<'_, J> {
    fn drop(&mut self) {
        let has_failed = self.has_failed;
        self.memory.with_execution(self.session, self.execution, |known| match &known.stage {
            // What the call did cannot be proven: it is as if this process had died in the middle.
            _ if has_failed => known.stage = Stage::Orphaned,
            Stage::Settling(envelope) => known.stage = Stage::Finished(Arc::clone(envelope)),
            _ => {}
        });
        if !has_failed {
            self.memory.remember(self.session, self.execution, self.bytes);
        }
    }
}
