//! The questions that are put to a session's user, and what follows from the answers.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, ErrorKind, Failure, Meta};

use crate::confirm::{self, Answerer, Error, Token};
use crate::deliveries::Delivery;
use crate::gate::{self, Attempt, Stop, Tokens};
use crate::orchestrator::{Orchestrator, ToolCall, Travelled};
use crate::redact;
use crate::refusal::{conflict, out_of_order, out_of_reach};
use crate::store::{
    self, Answer, AuditEntry, Backend, Claim, Claimed, Confirmation, Decision, Durability, Settlement, Status,
};
use crate::trip::Trip;

impl Orchestrator {
    /// The questions that wait for an answer, oldest first.
    pub async fn pending(&self, session: Option<&str>) -> store::Result<Vec<Arc<Confirmation>>> {
        let now = self.0.clock.now();
        let mut waiting = self.0.store.pending(session).await?;
        waiting.retain(|asked| asked.expires_at > now);
        Ok(waiting)
    }

    /// What a call came to, by the record: for whoever has missed a delivery. `None` when nothing is recorded, or when
    /// the call still runs or is in doubt.
    pub async fn recorded(&self, session: &str, execution: &str) -> store::Result<Option<Arc<Envelope>>> {
        let standing = self.0.store.recorded(session, execution).await?;
        Ok(standing.and_then(|standing| match standing.status {
            Status::Finished(envelope) => Some(envelope),
            Status::Running | Status::InDoubt | Status::Abandoned => None,
        }))
    }

    /// The user says yes, perhaps to other arguments: the recorded call runs once, and its envelope is delivered.
    pub async fn approve(
        &self,
        answerer: &Answerer<'_>,
        edited: Option<Value>,
    ) -> Result<Arc<Envelope>, Error> {
        let asked = self.asked(answerer).await?;
        let (args, shown) = match edited {
            Some(edited) => self.check_edited(&asked, edited).await?,
            None => (asked.args.clone(), asked.shown.clone()),
        };
        let decision = Decision::Approve { by: answerer.by.to_owned(), args, shown };
        self.approved(asked, decision, Remember::No).await
    }

    /// As [`Self::approve`], and the user is not asked about this tool again in this session, if policy allows that.
    pub async fn approve_and_remember(&self, answerer: &Answerer<'_>) -> Result<Arc<Envelope>, Error> {
        let asked = self.asked(answerer).await?;
        let (args, shown) = (asked.args.clone(), asked.shown.clone());
        let decision = Decision::Approve { by: answerer.by.to_owned(), args, shown };
        let remember = if self.0.policy.may_remember { Remember::Tool } else { Remember::No };
        self.approved(asked, decision, remember).await
    }

    async fn approved(
        &self,
        asked: Arc<Confirmation>,
        decision: Decision,
        remember: Remember,
    ) -> Result<Arc<Envelope>, Error> {
        let this = self.clone();
        to_its_end(Arc::clone(&self.0.detached), async move {
            let decided =
                this.0.store.decide(&asked.id, decision, this.0.clock.now()).await?.ok_or(Error::Refused)?;
            this.note(&decided, "approved").await;
            let envelope = this.run_approved(decided).await;
            if remember == Remember::Tool
                && let Err(error) = this.remember(&asked).await
            {
                tracing::error!("what a user wants to be remembered could not be: {error}");
            }
            Ok(envelope)
        })
        .await
    }

    /// The user is not asked about this tool again in this session.
    async fn remember(&self, asked: &Confirmation) -> store::Result<()> {
        self.change(&asked.session, |session| {
            if !session.remembered.contains(&asked.tool) {
                session.remembered.push(asked.tool.clone());
            }
        })
        .await
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
        to_its_end(Arc::clone(&self.0.detached), async move {
            let decided =
                this.0.store.decide(&asked.id, decision, this.0.clock.now()).await?.ok_or(Error::Refused)?;
            let envelope = this.decline(&decided).await;
            this.record(&decided, &envelope, None).await?;
            Ok(envelope)
        })
        .await
    }

    /// Takes up what was left when the process stopped, or when the store was away: approved calls that have not run.
    /// Returns how many there were.
    pub async fn resume(&self) -> store::Result<usize> {
        let approved = self.0.store.approved().await?;
        for approval in &approved {
            self.run_approved(Arc::clone(approval)).await;
        }
        Ok(approved.len())
    }

    /// Nobody has answered in time: that is delivered and audited. The call may be made again.
    pub(crate) async fn expire(&self, asked: &Confirmation) {
        self.decline(asked).await;
        self.note(asked, "expired").await;
    }

    /// Runs a call that a person has approved, and delivers its envelope.
    async fn run_approved(&self, approval: Arc<Confirmation>) -> Arc<Envelope> {
        let call = ToolCall {
            id: Some(approval.execution.clone()),
            tool: approval.tool.clone(),
            args: approval.args.clone(),
        };
        let envelope = match self.resolve(&approval.session, call, 0, None).await {
            Err(envelope) => Arc::new(*envelope),
            Ok(mut trip) => {
                trip.digest = approval.digest;
                trip.approval = Some(Arc::clone(&approval));
                match self.travel(&mut trip).await {
                    Travelled::Done(envelope) => {
                        self.close_approval(&approval, &envelope).await;
                        envelope
                    }
                    Travelled::Run(claimed) => self.run(trip, claimed, None).await,
                }
            }
        };
        self.deliver(&approval, &envelope);
        envelope
    }

    fn deliver(&self, asked: &Confirmation, envelope: &Arc<Envelope>) {
        self.0.deliveries.send(Delivery {
            session: asked.session.clone(),
            execution_id: asked.execution.clone(),
            envelope: Arc::clone(envelope),
        });
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
            execution: asked.execution.as_str().into(),
            tool: asked.tool.as_str().into(),
            tool_version: asked.tool_version.as_str().into(),
            digest: asked.digest,
            // Or else a call that must not run twice would stand as one that may, if this is interrupted.
            idempotent: false,
            budget: None,
            confirmation,
            now,
            durability,
        };
        let event = if asked.answer == Answer::Rejected { "rejected" } else { "closed" };
        let audit = self.about(asked, event).await;
        if self.0.store.claim(claim).await? != Claimed::New {
            if asked.answer != Answer::Rejected {
                return Ok(());
            }
            // The id was used for another call meanwhile; what the person said is on record even so.
            return Ok(self.0.store.append(audit).await?);
        }
        let (session, execution) = (asked.session.clone(), asked.execution.as_str().into());
        let envelope = Arc::clone(envelope);
        let settlement = Settlement { session, execution, envelope, audit, now, durability };
        self.0.store.settle(settlement).await?;
        Ok(())
    }

    /// An approved call that a gate refused is over: its approval must not run it later. One that could not even be
    /// looked up is not over: it keeps its approval.
    async fn close_approval(&self, asked: &Confirmation, envelope: &Arc<Envelope>) {
        let is_passing = matches!(&envelope.outcome, Err(failure) if failure.kind == ErrorKind::Transient);
        let is_recorded = envelope.is_ok() || envelope.meta.more.contains_key("replayed");
        if is_passing || is_recorded {
            return;
        }
        if let Err(error) = self.record(asked, envelope, Some(asked.id.clone())).await {
            tracing::error!("an approval could not be closed: {error}");
        }
    }

    /// Writes an answer, or that there was none, to the audit.
    async fn note(&self, asked: &Confirmation, event: &str) {
        if let Err(error) = self.0.store.append(self.about(asked, event).await).await {
            tracing::error!("the audit could not be written: {error}");
        }
    }

    /// The audit's entry about an answer.
    async fn about(&self, asked: &Confirmation, event: &str) -> AuditEntry {
        let mut data = json!({ "confirmation": asked.id, "by": asked.decided_by });
        if asked.is_edited {
            data["edited"] = true.into();
        }
        AuditEntry {
            at: self.0.clock.now(),
            event: event.to_owned(),
            session: asked.session.clone(),
            client_id: asked.client_id.clone(),
            tool: asked.tool.clone(),
            tool_version: asked.tool_version.clone(),
            registry_version: self.registry_version(asked).await,
            execution_id: asked.execution.clone(),
            // The call's own line has it; here it would cover arguments that must not be kept.
            args_digest: String::new(),
            outcome: event.to_owned(),
            duration_ms: 0,
            intents: Vec::new(),
            data,
        }
    }

    /// The version of the toolset that a question is about: its session's.
    async fn registry_version(&self, asked: &Confirmation) -> String {
        let session = self.0.store.session(&asked.session).await.ok().flatten();
        session.map(|session| session.registry_version().to_owned()).unwrap_or_default()
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

    async fn decline(&self, asked: &Confirmation) -> Arc<Envelope> {
        let meta = Meta {
            tool: asked.tool.clone(),
            tool_version: Some(asked.tool_version.clone()),
            registry_version: self.registry_version(asked).await,
            duration: 0,
            execution_id: asked.execution.clone(),
            more: Map::new(),
        };
        let envelope = Arc::new(Envelope { outcome: Err(confirm::declined(asked)), meta });
        self.deliver(asked, &envelope);
        envelope
    }

    /// Edited arguments are validated and clamped like any others. Returns them, and what may be kept of them.
    async fn check_edited(
        &self,
        asked: &Confirmation,
        edited: Value,
    ) -> Result<(Value, Option<Value>), Error> {
        let session = self.0.store.session(&asked.session).await?.ok_or(Error::Refused)?;
        let runtime = self.runtime(&session.toolset).ok_or(Error::Refused)?;
        let tool = runtime.toolset().get(&asked.tool).ok_or(Error::Refused)?;
        let prepared = runtime.ready(tool).await.map_err(|_| Error::Refused)?;
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
            tokens: Tokens::default(),
        };
        redact::restore(&mut attempt.args, &asked.args);
        match gate::admit_edited(&mut attempt) {
            Ok(()) => {
                let schema = &prepared.tool.spec.json_schema;
                let shown = prepared.has_secrets.then(|| redact::redacted(schema, &attempt.args));
                Ok((attempt.args, shown))
            }
            Err(Stop::Deny(failure)) => Err(Error::Edited(failure.message)),
            Err(Stop::Confirm) => Err(Error::Refused),
        }
    }

    /// Turns a call into a question.
    pub(crate) async fn ask(&self, trip: &mut Trip) -> Failure {
        let Some(prepared) = &trip.prepared else { return out_of_order() };
        let spec = &prepared.tool.spec;
        let token = Token::fresh();
        let shown = prepared.has_secrets.then(|| redact::redacted(&spec.json_schema, &trip.args));
        let question = Confirmation {
            id: token.id.clone(),
            session: trip.session.id.clone(),
            client_id: trip.session.client_id.clone(),
            execution: trip.execution.as_ref().to_owned(),
            tool: trip.tool.clone(),
            tool_version: spec.version.clone(),
            preview: confirm::preview(spec, shown.as_ref().unwrap_or(&trip.args)),
            args: trip.args.clone(),
            shown,
            is_edited: false,
            digest: trip.digest,
            token_hash: token.hash,
            created_at: trip.now,
            expires_at: trip.now.saturating_add(self.0.policy.confirmation_ms),
            answer: Answer::Pending,
            decided_by: None,
            reason: None,
        };
        match self.put(question).await {
            // The id waits for an answer to another call already.
            Ok(asked) if asked.digest != trip.digest => conflict(),
            Ok(asked) => {
                trip.tokens.spend();
                // A question that waited already keeps its id, and has the new secret.
                let secret = confirm::parts(&token.text).1.unwrap_or_default();
                confirm::required(&asked, spec, &format!("{}.{secret}", asked.id))
            }
            Err(error) => out_of_reach(&error),
        }
    }

    /// Keeps a question. One about the same call that has expired meanwhile is closed first, as it would be in time.
    async fn put(&self, question: Confirmation) -> store::Result<Arc<Confirmation>> {
        let waiting = self.0.store.pending(Some(&question.session)).await?;
        let is_late = |asked: &Arc<Confirmation>| {
            asked.execution == question.execution && asked.expires_at <= question.created_at
        };
        if waiting.iter().any(is_late) {
            self.sweep().await?;
        }
        self.0.store.ask(question).await
    }
}

/// What a yes is good for, beside the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remember {
    No,
    Tool,
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
