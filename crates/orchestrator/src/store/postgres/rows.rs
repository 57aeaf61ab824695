//! Records as rows, and back. Columns that change often stand beside the record's JSON, and override it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;
use toolwright_contract::Envelope;

use crate::store::records::{
    Answer, AuditRow, Claimed, Confirmation, Decision, SessionRecord, SessionStanding, Standing, Status,
};
use crate::store::{Error, Result};

/// A person's answer, as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Decided {
    by: String,
    reason: Option<String>,
    args: Option<Value>,
}

impl Decided {
    /// The answer, its form, and the arguments themselves if they must not be kept for longer than they are needed.
    pub(super) fn new(decision: Decision) -> (Answer, Self, Option<Value>) {
        match decision {
            Decision::Approve { by, args, shown } => {
                let (args, secrets) = parted(args, shown);
                (Answer::Approved, Self { by, reason: None, args: Some(args) }, secrets)
            }
            Decision::Reject { by, reason } => (Answer::Rejected, Self { by, reason, args: None }, None),
        }
    }
}

/// What may be kept, and what may not if that is something else.
pub(super) fn parted(args: Value, shown: Option<Value>) -> (Value, Option<Value>) {
    match shown {
        Some(shown) => (shown, Some(args)),
        None => (args, None),
    }
}

/// An id as PostgreSQL can hold it: its texts have no NUL.
pub(super) fn key(id: &str) -> Cow<'_, str> {
    if id.contains(['\0', '\\']) { id.replace('\\', r"\\").replace('\0', r"\0").into() } else { id.into() }
}

pub(super) fn standing_word(standing: SessionStanding) -> &'static str {
    match standing {
        SessionStanding::Active => "active",
        SessionStanding::Ended => "ended",
        SessionStanding::Expired => "expired",
    }
}

pub(super) fn answer_word(answer: Answer) -> &'static str {
    match answer {
        Answer::Pending => "pending",
        Answer::Approved => "approved",
        Answer::Rejected => "rejected",
        Answer::Expired => "expired",
        Answer::Used => "used",
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Corrupt(error.to_string()))
}

/// From `record, turn, retrievals, standing, expires_at, revision`.
pub(super) fn session(row: &Row) -> Result<SessionRecord> {
    let record: SessionRecord = parsed(&get::<String>(row, "record")?)?;
    Ok(SessionRecord {
        turn: get::<i64>(row, "turn")?.cast_unsigned(),
        retrievals: number(get(row, "retrievals")?)?,
        standing: word(get(row, "standing")?)?,
        expires_at: get(row, "expires_at")?,
        revision: get::<i64>(row, "revision")?.cast_unsigned(),
        ..record
    })
}

/// From `asked, decided, secrets, token_hash, answer`.
pub(super) fn confirmation(row: &Row) -> Result<Confirmation> {
    let mut confirmation: Confirmation = parsed(&get::<String>(row, "asked")?)?;
    confirmation.token_hash = digest(row, "token_hash")?;
    confirmation.answer = word(get(row, "answer")?)?;
    if let Some(decided) = get::<Option<String>>(row, "decided")? {
        let Decided { by, reason, args } = parsed(&decided)?;
        confirmation.decided_by = Some(by);
        confirmation.reason = reason;
        if let Some(args) = args {
            confirmation.is_edited = args != confirmation.args;
            confirmation.args = args;
        }
    }
    if let Some(secrets) = get::<Option<String>>(row, "secrets")? {
        let shown = std::mem::replace(&mut confirmation.args, parsed(&secrets)?);
        confirmation.shown = Some(shown);
    }
    Ok(confirmation)
}

/// From `digest, envelope, idempotent, is_owned`.
pub(super) fn standing(row: &Row) -> Result<Standing> {
    let envelope: Option<String> = get(row, "envelope")?;
    let status = match envelope {
        Some(text) => Status::Finished(parsed::<Envelope>(&text)?.into()),
        None if get(row, "is_owned")? => Status::Running,
        None if get(row, "idempotent")? => Status::Abandoned,
        None => Status::InDoubt,
    };
    Ok(Standing { digest: digest(row, "digest")?, status })
}

/// What `claim` has decided; `None` when there is no such session.
pub(super) fn claimed(row: &Row) -> Result<Option<Claimed>> {
    let verdict: String = get(row, "verdict")?;
    Ok(Some(match verdict.as_str() {
        "new" => Claimed::New,
        "running" => Claimed::Running,
        "finished" => {
            let text: String = get(row, "recorded")?;
            Claimed::Finished(parsed::<Envelope>(&text)?.into())
        }
        "in_doubt" => Claimed::InDoubt,
        "conflict" => Claimed::Conflict,
        "over_budget" => Claimed::OverBudget { used: number(get(row, "used")?)? },
        "unapproved" => Claimed::Unapproved,
        "no_session" => return Ok(None),
        other => return Err(Error::Corrupt(format!("a claim was decided as {other}"))),
    }))
}

pub(super) fn audit(row: &Row) -> Result<AuditRow> {
    Ok(AuditRow {
        number: get::<i64>(row, "number")?.cast_unsigned(),
        chain: get(row, "chain")?,
        position: get::<i64>(row, "position")?.cast_unsigned(),
        previous: get(row, "previous")?,
        hash: get(row, "hash")?,
        entry: get(row, "entry")?,
    })
}

pub(super) fn get<T: FromSqlOwned>(row: &Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| Error::Corrupt(format!("column {column}: {error}")))
}

pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Corrupt(error.to_string()))
}

fn word<T: DeserializeOwned>(text: String) -> Result<T> {
    serde_json::from_value(Value::String(text)).map_err(|error| Error::Corrupt(error.to_string()))
}

fn number(count: i64) -> Result<u32> {
    u32::try_from(count).map_err(|error| Error::Corrupt(error.to_string()))
}

fn digest(row: &Row, column: &str) -> Result<[u8; 32]> {
    let bytes: Vec<u8> = get(row, column)?;
    bytes.try_into().map_err(|_| Error::Corrupt(format!("column {column}: a digest has 32 bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_any_id_and_do_not_collide() {
        let ids = ["plain", "a\0b", r"a\0b", r"a\\0b", "a\\\0b", "größe"];
        let keys: std::collections::BTreeSet<_> = ids.iter().map(|id| key(id)).collect();
        assert_eq!(keys.len(), ids.len());
        assert!(keys.iter().all(|key| !key.contains('\0')));
        assert_eq!(key("plain"), "plain");
    }
}
