//! The life of a session, and the questions that are put to its user.

use std::sync::{Arc, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};
use toolwright_capabilities::Client;
use toolwright_contract::{Envelope, Failure};

use crate::confirm::{self, Answerer, Error, Token};
use crate::gate::{self, Attempt, Stop};
use crate::orchestrator::{Delivery, Orchestrator, key_of};
use crate::redact;
use crate::runtime::Runtime;
use crate::session::NewSession;
use crate::state::{self, Event};
use crate::store::{
    self, Answer, AuditEntry, Backend, Claim, Claimed, Confirmation, Decision, Durability, SessionRecord,
    SessionStanding, Settlement,
};
use crate::trip::Trip;

/// The beginning of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub number: u64,
    /// A message that a tool left for this moment.
    pub message: Option<String>,
}

impl Orchestrator {
    /// Begins a session with the current toolset, which it keeps.
    pub async fn create_session(&self, new: NewSession) -> store::Result<Arc<SessionRecord>> {
        let version = {
            let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
            key_of(&toolsets.current)
        };
        let record = new.record(version, self.0.clock.now(), self.0.policy.session_ms);
        self.0.store.create_session(record.clone()).await?;
        Ok(Arc::new(record))
    }

    /// The session as it is: one whose time is over is not active any more, whether or not anyone has noticed.
    pub async fn session(&self, id: &str) -> store::Result<Option<Arc<SessionRecord>>> {
        let Some(session) = self.0.store.session(id).await? else { return Ok(None) };
        if session.standing == SessionStanding::Active && !state::is_active(&session, self.0.clock.now()) {
            let expired = session.expires_at <= self.0.clock.now();
            let standing = if expired { SessionStanding::Expired } else { SessionStanding::Ended };
            return Ok(Some(Arc::new(SessionRecord { standing, ..(*session).clone() })));
        }
        Ok(Some(session))
    }

    /// Where messages and progress of a session go from now on.
    pub fn attach(&self, session: &str, client: Arc<dyn Client>) {
        self.0.clients.write().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), client);
    }

    /// The client has gone away.
    pub fn detach(&self, session: &str) {
        self.0.clients.write().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// The user has said something: a new turn with a fresh budget.
    pub async fn begin_turn(&self, session: &str) -> store::Result<Turn> {
        let record = self.0.store.begin_turn(session, self.0.clock.now()).await?;
        let waiting = record.state.get("pendingMessage").is_some();
        let message = if waiting { self.change(session, state::take_message).await? } else { None };
        Ok(Turn { number: record.turn, message })
    }

    /// Tells what happened in the conversation. True when it ends the session.
    pub async fn notice(&self, session: &str, event: Event) -> store::Result<bool> {
        self.change(session, |session| state::notice(session, event)).await
    }

    /// Ends a session.
    pub async fn end_session(&self, session: &str) -> store::Result<()> {
        self.change(session, |session| session.standing = SessionStanding::Ended).await?;
        self.detach(session);
        Ok(())
    }

    /// Makes a newer toolset the one that sessions begin with. Those that have begun keep theirs.
    pub fn install(&self, runtime: Runtime) {
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        toolsets.by_version.insert(key_of(&runtime), runtime.clone());
        toolsets.current = runtime;
        drop(toolsets);
        self.0.installed.send_modify(|count| *count += 1);
    }

    /// Tells when another toolset was installed.
    pub fn installs(&self) -> watch::Receiver<u64> {
        self.0.installed.subscribe()
    }

    /// Takes up what was left when the process stopped: approved calls that have not run. Returns how many there were.
    pub async fn resume(&self) -> store::Result<usize> {
        let approved = self.0.store.approved().await?;
        for approval in &approved {
            self.run_approved(Arc::clone(approval)).await;
        }
        Ok(approved.len())
    }

    /// Lets time pass: sessions and questions that have expired are closed. To be called every few seconds.
    pub async fn sweep(&self) -> store::Result<()> {
        let now = self.0.clock.now();
        let waiting = self.0.store.pending(None).await?;
        self.0.store.sweep(now).await?;
        for asked in waiting.iter().filter(|asked| asked.expires_at <= now) {
            let expired = Confirmation { answer: Answer::Expired, ..(**asked).clone() };
            self.decline(&expired);
        }
        Ok(())
    }

    /// The answers to calls that waited for a person, as they come.
    pub fn deliveries(&self) -> broadcast::Receiver<Delivery> {
        self.0.deliveries.subscribe()
    }

    /// The questions that wait for an answer, oldest first.
    pub async fn pending(&self, session: Option<&str>) -> store::Result<Vec<Arc<Confirmation>>> {
        let now = self.0.clock.now();
        let mut waiting = self.0.store.pending(session).await?;
        waiting.retain(|asked| asked.expires_at > now);
        Ok(waiting)
    }

    /// The user says yes, perhaps to other arguments: the recorded call runs once, and its envelope is delivered.
    pub async fn approve(
        &self,
        answerer: &Answerer<'_>,
        edited: Option<Value>,
    ) -> Result<Arc<Envelope>, Error> {
        let asked = self.asked(answerer).await?;
        let args = match edited {
            Some(edited) => self.check_edited(&asked, edited).await?,
            None => asked.args.clone(),
        };
        let decision = Decision::Approve { by: answerer.by.to_owned(), args };
        let this = self.clone();
        to_its_end(self.0.detached.clone(), async move {
            let decided =
                this.0.store.decide(&asked.id, decision, this.0.clock.now()).await?.ok_or(Error::Refused)?;
            if let Err(error) = this.0.store.append(this.decided(&decided, "approved")).await {
                tracing::error!("the audit could not be written: {error}");
            }
            Ok(this.run_approved(decided).await)
        })
        .await
    }

    /// As [`Self::approve`], and the user is not asked about this tool again in this session, if policy allows that.
    pub async fn approve_and_remember(&self, answerer: &Answerer<'_>) -> Result<Arc<Envelope>, Error> {
        let asked = self.asked(answerer).await?;
        let envelope = self.approve(answerer, None).await?;
        if self.0.policy.may_remember {
            self.change(&asked.session, |session| {
                if !session.remembered.contains(&asked.tool) {
                    session.remembered.push(asked.tool.clone());
                }
            })
            .await?;
        }
        Ok(envelope)
    }

    /// The user says no.
    pub async fn reject(
        &self,
        answerer: &Answerer<'_>,
        reason: Option<String>,
    ) -> Result<Arc<Envelope>, Error> {
        let asked = self.asked(answerer).await?;
        let decision = Decision::Reject { by: answerer.by.to_owned(), reason };
        let this = self.clone();
        to_its_end(self.0.detached.clone(), async move {
            let decided =
                this.0.store.decide(&asked.id, decision, this.0.clock.now()).await?.ok_or(Error::Refused)?;
            let envelope = this.decline(&decided);
            this.record(&decided, &envelope, None).await?;
            Ok(envelope)
        })
        .await
    }

    /// Records a person's no as what the call came to: asked again, it is answered from the record.
    async fn record(
        &self,
        asked: &Confirmation,
        envelope: &Arc<Envelope>,
        confirmation: Option<String>,
    ) -> Result<(), Error> {
        let (now, durability) = (self.0.clock.now(), Durability::Relaxed);
        let claim = Claim {
            session: asked.session.clone(),
            execution: asked.execution.clone(),
            tool: asked.tool.clone(),
            tool_version: asked.tool_version.clone(),
            digest: asked.digest,
            // Or else a call that must not run twice would stand as one that may, if this is interrupted.
            idempotent: false,
            budget: None,
            confirmation,
            now,
            durability,
        };
        let event = if asked.answer == Answer::Rejected { "rejected" } else { "closed" };
        let audit = self.decided(asked, event);
        if self.0.store.claim(claim).await? != Claimed::New {
            if asked.answer != Answer::Rejected {
                return Ok(());
            }
            // The id was used for another call meanwhile; what the person said is on record even so.
            return Ok(self.0.store.append(audit).await?);
        }
        let (session, execution) = (asked.session.clone(), asked.execution.clone());
        let envelope = Arc::clone(envelope);
        Ok(self.0.store.settle(Settlement { session, execution, envelope, audit, now, durability }).await?)
    }

    /// An approved call that a gate refused is over: its approval must not run it later.
    pub(crate) async fn close_approval(&self, asked: &Confirmation, envelope: &Arc<Envelope>) {
        let is_recorded = envelope.is_ok() || envelope.meta.more.contains_key("replayed");
        if is_recorded {
            return;
        }
        if let Err(error) = self.record(asked, envelope, Some(asked.id.clone())).await {
            tracing::error!("an approval could not be closed: {error}");
        }
    }

    /// The audit's entry about an answer.
    fn decided(&self, asked: &Confirmation, event: &str) -> AuditEntry {
        AuditEntry {
            at: self.0.clock.now(),
            event: event.to_owned(),
            session: asked.session.clone(),
            client_id: asked.client_id.clone(),
            tool: asked.tool.clone(),
            tool_version: asked.tool_version.clone(),
            registry_version: String::new(),
            execution_id: asked.execution.clone(),
            // The call's own line has it; here it would cover arguments that must not be kept.
            args_digest: String::new(),
            outcome: event.to_owned(),
            duration_ms: 0,
            intents: Vec::new(),
            data: serde_json::json!({ "confirmation": asked.id, "by": asked.decided_by }),
        }
    }

    async fn asked(&self, answerer: &Answerer<'_>) -> Result<Arc<Confirmation>, Error> {
        let (id, _) = confirm::parts(answerer.token);
        let asked = self.0.store.confirmation(id).await?.ok_or(Error::Refused)?;
        if confirm::may_answer(&asked, answerer, self.0.clock.now()) {
            Ok(asked)
        } else {
            Err(Error::Refused)
        }
    }

    fn decline(&self, asked: &Confirmation) -> Arc<Envelope> {
        let meta = toolwright_contract::Meta {
            tool: asked.tool.clone(),
            tool_version: Some(asked.tool_version.clone()),
            registry_version: String::new(),
            duration: 0,
            execution_id: asked.execution.clone(),
            more: Map::new(),
        };
        let envelope = Arc::new(Envelope { outcome: Err(confirm::declined(asked)), meta });
        self.deliver(asked, &envelope);
        envelope
    }

    /// Edited arguments are validated and clamped like any others.
    async fn check_edited(&self, asked: &Confirmation, edited: Value) -> Result<Value, Error> {
        let session = self.0.store.session(&asked.session).await?.ok_or(Error::Refused)?;
        let runtime = self.runtime(&session.toolset).ok_or(Error::Refused)?;
        let tool = runtime.toolset().get(&asked.tool).ok_or(Error::Refused)?;
        let prepared = runtime.ready(tool).map_err(|_| Error::Refused)?;
        let mut attempt = Attempt {
            session: &session,
            prepared: &prepared,
            policy: &self.0.policy,
            rules: &self.0.rules,
            now: self.0.clock.now(),
            is_approved: true,
            is_paid: false,
            args: edited,
            clamped: Map::new(),
        };
        redact::restore(&mut attempt.args, &asked.args);
        match gate::admit_edited(&mut attempt) {
            Ok(()) => Ok(attempt.args),
            Err(Stop::Deny(failure)) => Err(Error::Edited(failure.message)),
            Err(Stop::Confirm) => Err(Error::Refused),
        }
    }

    /// Turns a call into a question.
    pub(crate) async fn ask(&self, trip: &Trip) -> Failure {
        let Some(prepared) = &trip.prepared else { return crate::refusal::out_of_order() };
        let spec = &prepared.tool.spec;
        let token = Token::fresh();
        let shown = if prepared.has_secrets {
            redact::redacted(&spec.json_schema, &trip.args)
        } else {
            trip.args.clone()
        };
        let question = Confirmation {
            id: token.id.clone(),
            session: trip.session.id.clone(),
            client_id: trip.session.client_id.clone(),
            execution: trip.execution.clone(),
            tool: trip.tool.clone(),
            tool_version: spec.version.clone(),
            args: trip.args.clone(),
            digest: trip.digest,
            preview: confirm::preview(spec, &shown),
            token_hash: token.hash,
            created_at: trip.now,
            expires_at: trip.now.saturating_add(self.0.policy.confirmation_ms),
            answer: Answer::Pending,
            decided_by: None,
            reason: None,
        };
        match self.0.store.ask(question).await {
            // The id waits for an answer to another call already.
            Ok(asked) if asked.digest != trip.digest => crate::refusal::conflict(),
            Ok(asked) => {
                // A question that waited already keeps its id, and has the new secret.
                let secret = confirm::parts(&token.text).1.unwrap_or_default();
                confirm::required(&asked, spec, &format!("{}.{secret}", asked.id))
            }
            Err(error) => crate::refusal::out_of_reach(&error),
        }
    }

    /// Changes a session by a pure function, again and again until nobody interferes.
    pub(crate) async fn change<T>(
        &self,
        id: &str,
        change: impl Fn(&mut SessionRecord) -> T,
    ) -> store::Result<T> {
        loop {
            let session = self.0.store.session(id).await?;
            let before = session.ok_or_else(|| store::Error::NoSession(id.to_owned()))?;
            let mut after = (*before).clone();
            let outcome = change(&mut after);
            if after == *before || self.0.store.update_session(&after).await? {
                return Ok(outcome);
            }
        }
    }
}

/// A person's answer counts from the moment it is recorded: what follows from it is done, also when whoever gave it has
/// gone away by then.
async fn to_its_end<T: Send + 'static>(
    at_work: Arc<()>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let ended = tokio::spawn(async move {
        let ended = work.await;
        drop(at_work);
        ended
    })
    .await;
    ended.unwrap_or_else(|lost| Err(Error::Store(store::Error::Unavailable(lost.to_string()))))
}
