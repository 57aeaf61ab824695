//! The store's rules, told to the database.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};
use toolwright_postgres::{Failure, Parameters};

use super::Postgres;
use super::keeper::Loose;
use super::rows::{self, Decided, answer_word, get, json, key, standing_word};
use super::writer::{Job, ToSettle};
use crate::store::records::{
    AuditEntry, AuditRow, Claim, Claimed, Confirmation, Decision, Durability, SessionRecord, Settled,
    Settlement, Standing, Swept,
};
use crate::store::{Backend, Error, KEPT_FOR_MS, KEPT_PER_SESSION, Result};

const CREATE_SESSION: &str =
    "INSERT INTO session (id, record, turn, retrievals, standing, expires_at, revision)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING true";
const SESSION: &str =
    "SELECT record, turn, retrievals, standing, expires_at, revision FROM session WHERE id = $1";
const BEGIN_TURN: &str = "UPDATE session SET turn = turn + 1, retrievals = 0
    FROM set_config('synchronous_commit', 'off', true) WHERE id = $1
    RETURNING record, turn, retrievals, standing, expires_at, revision";
const UPDATE_SESSION: &str = "WITH changed AS (
        UPDATE session SET record = $2, standing = $3, expires_at = $4, revision = revision + 1
        WHERE id = $1 AND revision = $5 RETURNING true)
    SELECT EXISTS (SELECT FROM changed) AS is_changed, EXISTS (SELECT FROM session WHERE id = $1) AS is_known";
const RECORDED: &str =
    "SELECT digest, envelope, idempotent, coalesce(owner = $3, false) OR is_alive(owner) AS is_owned
    FROM execution WHERE session = $1 AND id = $2";
const CLAIM: &str = "SELECT verdict, recorded, used
    FROM claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
const RELEASE: &str = "UPDATE execution SET owner = NULL FROM set_config('synchronous_commit', 'off', true)
    WHERE session = $1 AND id = $2 AND owner = $3 AND idempotent AND envelope IS NULL";
const ASK: &str = "SELECT asked, decided, secrets, token_hash, answer
    FROM ask($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const CONFIRMATION: &str =
    "SELECT asked, decided, secrets, token_hash, answer FROM confirmation WHERE id = $1";
pub(super) const PENDING: &str = "SELECT asked, decided, secrets, token_hash, answer FROM confirmation
    WHERE answer = 'pending' ORDER BY created_at, id";
const PENDING_OF: &str = "SELECT asked, decided, secrets, token_hash, answer FROM confirmation
    WHERE answer = 'pending' AND session = $1 ORDER BY created_at, id";
const APPROVED: &str = "SELECT asked, decided, secrets, token_hash, answer FROM confirmation
    WHERE answer = 'approved' ORDER BY created_at, id";
const DECIDE: &str = "UPDATE confirmation SET answer = $2, decided = $3, secrets = $5
    WHERE id = $1 AND answer = 'pending' AND expires_at > $4
    RETURNING asked, decided, secrets, token_hash, answer";
pub(super) const HORIZON: &str = "SELECT audit_horizon() AS last";
pub(super) const AUDIT: &str = "SELECT number, chain, position, previous, hash, entry FROM audit
    WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3";
const FORGET_SESSIONS: &str = "SELECT forget_sessions($1, $2) AS count";
const FORGET_EXECUTIONS: &str = "SELECT forget_executions($1, $2, $3) AS count";
/// Rows are locked in order, so that two sweeps at once do not wait for each other.
const EXPIRE_SESSIONS: &str = "WITH late AS (
        SELECT id FROM session WHERE standing = 'active' AND expires_at <= $1 ORDER BY id FOR NO KEY UPDATE
    ), expired AS (
        UPDATE session SET revision = revision + 1,
            -- See SessionRecord::standing_at. A text inside of the record would have its quotation marks escaped.
            standing = CASE WHEN position('\"pendingEndVoiceSession\":' IN record) > 0 THEN 'ended' ELSE 'expired' END
        FROM late WHERE session.id = late.id RETURNING 1
    ) SELECT count(*) FROM expired";
const OVER: &str = "SELECT wanted.id FROM unnest($1::text[]) AS wanted (id)
    LEFT JOIN session s ON s.id = wanted.id AND s.standing = 'active' AND s.expires_at > $2
    WHERE s.id IS NULL";
/// The name of the toolset stands in the record as it is; a text in it would have its quotation marks escaped.
const IS_KEPT: &str = "SELECT EXISTS (SELECT FROM session
    WHERE standing = 'active' AND position('\"toolset\":\"' || $1 || '\"' IN record) > 0) AS is_kept";
const EXPIRE_QUESTIONS: &str = "WITH late AS (
        SELECT id FROM confirmation WHERE answer = 'pending' AND expires_at <= $1 ORDER BY id FOR NO KEY UPDATE
    ), expired AS (
        UPDATE confirmation SET answer = 'expired', secrets = NULL FROM late WHERE confirmation.id = late.id
        RETURNING asked, decided, secrets, token_hash, answer, created_at, confirmation.id
    ) SELECT * FROM expired ORDER BY created_at, id";
/// Of calls that have never been settled.
const FORGET_SECRETS: &str = "UPDATE confirmation SET secrets = NULL WHERE secrets IS NOT NULL AND answer = 'used' AND expires_at <= $1";
const FORGET_QUESTIONS: &str =
    "DELETE FROM confirmation WHERE answer IN ('rejected', 'expired', 'used') AND expires_at <= $1";
/// A missing row says the same as one whose lease has run out, whoever refers to it; a day is for people who look.
const FORGET_INSTANCES: &str =
    "DELETE FROM instance WHERE lease_until < clock_timestamp() - interval '1 day' AND NOT is_alive(id)";
/// A commit that waits for the disk takes all earlier ones with it.
pub(super) const FLUSH: &str = "SELECT renew($1, $2)";

/// How many rows a sweep removes in one transaction.
const CHUNK: i64 = 5_000;

impl Backend for Postgres {
    async fn create_session(&self, session: SessionRecord) -> Result<()> {
        let parameters: Parameters<'_> = &[
            &key(&session.id),
            &json(&session)?,
            &session.turn.cast_signed(),
            &i64::from(session.retrievals),
            &standing_word(session.standing),
            &session.expires_at,
            &session.revision.cast_signed(),
        ];
        let created = self.calls.query(CREATE_SESSION, parameters).await?;
        if created.is_empty() { Err(Error::Exists(session.id)) } else { Ok(()) }
    }

    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>> {
        let rows = self.calls.query(SESSION, &[&key(id)]).await?;
        rows.first().map(rows::session).transpose().map(|session| session.map(Arc::new))
    }

    async fn begin_turn(&self, id: &str, _now: i64) -> Result<Arc<SessionRecord>> {
        let rows = self.calls.query(BEGIN_TURN, &[&key(id)]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.to_owned()))?;
        rows::session(row).map(Arc::new)
    }

    async fn update_session(&self, session: &SessionRecord) -> Result<bool> {
        let parameters: Parameters<'_> = &[
            &key(&session.id),
            &json(session)?,
            &standing_word(session.standing),
            &session.expires_at,
            &session.revision.cast_signed(),
        ];
        let row = one(self.calls.query(UPDATE_SESSION, parameters).await?)?;
        if !get::<bool>(&row, "is_known")? {
            return Err(Error::NoSession(session.id.clone()));
        }
        get(&row, "is_changed")
    }

    async fn recorded(&self, session: &str, execution: &str) -> Result<Option<Standing>> {
        let rows = self.calls.query(RECORDED, &[&key(session), &key(execution), &self.instance]).await?;
        rows.first().map(rows::standing).transpose()
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let (session, execution) = (key(&claim.session), key(&claim.execution));
        let confirmation = claim.confirmation.as_deref().map(key);
        let (turn, limit) = claim.budget.map(|(turn, limit)| (turn.cast_signed(), i64::from(limit))).unzip();
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let parameters: Parameters<'_> = &[
            &session,
            &execution,
            &key(&claim.tool),
            &key(&claim.tool_version),
            &claim.digest.as_slice(),
            &claim.idempotent,
            &turn,
            &limit,
            &confirmation,
            &claim.now,
            &self.instance,
            &self.lease_ms,
            &attempt,
            &(claim.durability == Durability::Relaxed),
        ];
        let mut connection = self.calls.borrow().await?;
        let unanswered = Unanswered {
            loose: &self.loose,
            claim: Some(Loose::Claimed {
                session: session.clone().into_owned(),
                execution: execution.clone().into_owned(),
                turn,
                confirmation: confirmation.clone().map(std::borrow::Cow::into_owned),
                attempt,
            }),
        };
        let answer = connection.query(CLAIM, parameters).await;
        if !matches!(answer, Err(Failure::Lost(_))) {
            unanswered.forget();
        }
        rows::claimed(&one(answer?)?)?.ok_or(Error::NoSession(claim.session))
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled> {
        let settled = ToSettle {
            session: key(&settlement.session).into_owned(),
            execution: key(&settlement.execution).into_owned(),
            envelope: json(&*settlement.envelope)?,
            name: settlement.session,
        };
        self.write(Some(settled), settlement.audit, settlement.durability).await
    }

    async fn release(&self, session: &str, execution: &str) -> Result<()> {
        self.calls.query(RELEASE, &[&key(session), &key(execution), &self.instance]).await?;
        Ok(())
    }

    async fn ask(&self, mut confirmation: Confirmation) -> Result<Arc<Confirmation>> {
        let secrets = confirmation.shown.take().map(|shown| std::mem::replace(&mut confirmation.args, shown));
        let secrets = secrets.as_ref().map(json).transpose()?;
        let parameters: Parameters<'_> = &[
            &key(&confirmation.id),
            &key(&confirmation.session),
            &key(&confirmation.execution),
            &key(&confirmation.tool),
            &key(&confirmation.tool_version),
            &confirmation.digest.as_slice(),
            &json(&confirmation)?,
            &secrets,
            &confirmation.token_hash.as_slice(),
            &answer_word(confirmation.answer),
            &confirmation.created_at,
            &confirmation.expires_at,
        ];
        match self.calls.query(ASK, parameters).await {
            Err(failure) if failure.is_duplicate() => Err(Error::Exists(confirmation.id)),
            rows => rows::confirmation(&one(rows?)?).map(Arc::new),
        }
    }

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<Confirmation>>> {
        let rows = self.calls.query(CONFIRMATION, &[&key(id)]).await?;
        rows.first().map(rows::confirmation).transpose().map(|found| found.map(Arc::new))
    }

    async fn pending(&self, session: Option<&str>) -> Result<Vec<Arc<Confirmation>>> {
        let rows = match session {
            None => self.calls.query(PENDING, &[]).await?,
            Some(session) => self.calls.query(PENDING_OF, &[&key(session)]).await?,
        };
        rows.iter().map(|row| rows::confirmation(row).map(Arc::new)).collect()
    }

    async fn decide(&self, id: &str, decision: Decision, now: i64) -> Result<Option<Arc<Confirmation>>> {
        let (answer, decided, secrets) = Decided::new(decision);
        let secrets = secrets.as_ref().map(json).transpose()?;
        let parameters: Parameters<'_> = &[&key(id), &answer_word(answer), &json(&decided)?, &now, &secrets];
        let rows = self.calls.query(DECIDE, parameters).await?;
        rows.first().map(rows::confirmation).transpose().map(|found| found.map(Arc::new))
    }

    async fn approved(&self) -> Result<Vec<Arc<Confirmation>>> {
        let rows = self.calls.query(APPROVED, &[]).await?;
        rows.iter().map(|row| rows::confirmation(row).map(Arc::new)).collect()
    }

    async fn append(&self, entry: AuditEntry) -> Result<()> {
        self.write(None, entry, Durability::Relaxed).await.map(drop)
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.calls.borrow().await?;
        let last: i64 = get(&one(connection.query(HORIZON, &[]).await?)?, "last")?;
        connection.query(AUDIT, &[&after, &last, &limit]).await?.iter().map(rows::audit).collect()
    }

    async fn sweep(&self, now: i64) -> Result<Swept> {
        let before = now - KEPT_FOR_MS;
        let kept = i64::try_from(KEPT_PER_SESSION).unwrap_or(i64::MAX);
        let mut connection = self.calls.borrow().await?;
        while count(&connection.query(FORGET_SESSIONS, &[&before, &CHUNK]).await?)? >= CHUNK {}
        while count(&connection.query(FORGET_EXECUTIONS, &[&kept, &before, &CHUNK]).await?)? >= CHUNK {}
        connection.query(FORGET_QUESTIONS, &[&before]).await?;
        let sessions = count(&connection.query(EXPIRE_SESSIONS, &[&now]).await?)?;
        let questions = connection.query(EXPIRE_QUESTIONS, &[&now]).await?;
        let questions =
            questions.iter().map(|row| rows::confirmation(row).map(Arc::new)).collect::<Result<_>>()?;
        connection.query(FORGET_SECRETS, &[&now]).await?;
        connection.query(FORGET_INSTANCES, &[]).await?;
        Ok(Swept { sessions: usize::try_from(sessions).unwrap_or_default(), questions })
    }

    async fn over(&self, sessions: &[String], now: i64) -> Result<Vec<String>> {
        let keys: Vec<_> = sessions.iter().map(|id| key(id)).collect();
        let rows = self.calls.query(OVER, &[&keys, &now]).await?;
        let over = rows.iter().map(|row| get::<String>(row, "id")).collect::<Result<HashSet<_>>>()?;
        let is_over = |id: &&String| over.contains(&*key(id));
        Ok(sessions.iter().filter(is_over).cloned().collect())
    }

    async fn is_kept(&self, toolset: &str) -> Result<bool> {
        get(&one(self.calls.query(IS_KEPT, &[&toolset]).await?)?, "is_kept")
    }

    async fn flush(&self) -> Result<()> {
        self.calls.query(FLUSH, &[&self.instance, &self.lease_ms]).await?;
        Ok(())
    }
}

impl Postgres {
    async fn write(
        &self,
        settled: Option<ToSettle>,
        entry: AuditEntry,
        durability: Durability,
    ) -> Result<Settled> {
        let closed = || Error::Unavailable("it is closed".to_owned());
        let (answer, written) = oneshot::channel();
        self.jobs.send(Job { settled, entry, durability, answer }).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())?
    }
}

/// Until it is forgotten, the claim may be in the database without anybody who knows: its answer is lost, or the caller
/// has gone away while it was on its way.
struct Unanswered<'a> {
    loose: &'a mpsc::UnboundedSender<Loose>,
    claim: Option<Loose>,
}

impl Unanswered<'_> {
    fn forget(mut self) {
        self.claim = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            // Without a keeper the lease ends, which says it all.
            _ = self.loose.send(claim);
        }
    }
}

fn one(rows: Vec<tokio_postgres::Row>) -> Result<tokio_postgres::Row> {
    rows.into_iter().next().ok_or_else(|| Error::Corrupt("a statement gave no row".to_owned()))
}

fn count(rows: &[tokio_postgres::Row]) -> Result<i64> {
    rows.first().map_or(Ok(0), |row| get(row, "count"))
}
