//! Converts records to rows and back. Columns that change often are beside the record's JSON, and override it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;
use toolwright_contract::Envelope;

use crate::store::chain;
use crate::store::rate_windows::RateExceeded;
use crate::store::records::{
    ApproverRecord, ArgumentEdit, AuditRow, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Decision,
    Durability, ExecutionRecord, ExecutionStatus, SessionRecord, ToolsetInfo,
};
use crate::store::{Error, Result};

/// The columns that [`session`] reads.
macro_rules! session_columns {
    () => {
        "record, turn, spent::text AS spent, standing, expires_at, revision"
    };
}

/// The columns that [`confirmation`] reads.
macro_rules! confirmation_columns {
    () => {
        "asked, decided, secrets, token_hash, answer"
    };
}

pub(super) use {confirmation_columns, session_columns};

/// The column `decided` of a confirmation.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredDecision {
    by: String,
    reason: Option<String>,
    args: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roles: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approver: Option<ApproverRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edits: Vec<ArgumentEdit>,
}

impl StoredDecision {
    /// The new status, the column `decided`, and the column `secrets`: the arguments, if they must not be stored for
    /// longer than they are needed.
    pub(super) fn new(decision: Decision) -> (ConfirmationStatus, Self, Option<Value>) {
        match decision {
            Decision::Approve { by, args, redacted_args, edits, roles } => {
                let (args, secrets) = match redacted_args {
                    Some(redacted) => (redacted, Some(args)),
                    None => (args, None),
                };
                let decision = Self { args: Some(args), roles, edits, ..Self::by_approver(by) };
                (ConfirmationStatus::Approved, decision, secrets)
            }
            Decision::Reject { by, reason } => {
                (ConfirmationStatus::Rejected, Self { reason, ..Self::by_approver(by) }, None)
            }
        }
    }
}

impl StoredDecision {
    fn by_approver(by: ApproverRecord) -> Self {
        let (name, approver) = (by.id.clone(), Some(by));
        Self { by: name, reason: None, args: None, roles: None, approver, edits: Vec::new() }
    }
}

/// An id in a form that PostgreSQL can store: its texts have no NUL.
pub(super) fn key(id: &str) -> Cow<'_, str> {
    if id.contains(['\0', '\\']) { id.replace('\\', r"\\").replace('\0', r"\0").into() } else { id.into() }
}

/// The id that [`key`] has made this key of.
pub(super) fn id_of_key(key: &str) -> String {
    let mut id = String::with_capacity(key.len());
    let mut chars = key.chars();
    while let Some(char) = chars.next() {
        id.push(match char {
            '\\' if chars.next() == Some('0') => '\0',
            char => char,
        });
    }
    id
}

/// The name of an enum variant, as in its JSON.
pub(super) fn variant_name<T: Serialize>(value: &T) -> Result<String> {
    json(value).map(|text| text.trim_matches('"').to_owned())
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Corrupt(error.to_string()))
}

pub(super) fn session(row: &Row) -> Result<SessionRecord> {
    let record: SessionRecord = parse(&get::<String>(row, "record")?)?;
    Ok(SessionRecord {
        turn: get::<i64>(row, "turn")?.cast_unsigned(),
        spent: parse(&get::<String>(row, "spent")?)?,
        status: variant(get(row, "standing")?)?,
        expires_at: get(row, "expires_at")?,
        revision: get::<i64>(row, "revision")?.cast_unsigned(),
        ..record
    })
}

pub(super) fn confirmation(row: &Row) -> Result<ConfirmationRecord> {
    let mut confirmation: ConfirmationRecord = parse(&get::<String>(row, "asked")?)?;
    confirmation.token_hash = digest(row, "token_hash")?;
    confirmation.status = variant(get(row, "answer")?)?;
    if let Some(decided) = get::<Option<String>>(row, "decided")? {
        let StoredDecision { by, reason, args, roles, approver, edits } = parse(&decided)?;
        confirmation.decided_by = Some(by);
        (confirmation.approver, confirmation.edits) = (approver, edits);
        confirmation.reason = reason;
        confirmation.roles = roles.or(confirmation.roles);
        if let Some(args) = args {
            confirmation.is_edited = args != confirmation.args;
            confirmation.args = args;
        }
    }
    if let Some(secrets) = get::<Option<String>>(row, "secrets")? {
        let redacted = std::mem::replace(&mut confirmation.args, parse(&secrets)?);
        confirmation.redacted_args = Some(redacted);
    }
    Ok(confirmation)
}

pub(super) fn toolset_info(row: &Row) -> Result<ToolsetInfo> {
    Ok(ToolsetInfo {
        id: get(row, "id")?,
        created_at: get(row, "created_at")?,
        used_at: get(row, "used_at")?,
        tools: get::<i32>(row, "tools")?.cast_unsigned(),
        bytes: get::<i64>(row, "bytes")?.cast_unsigned(),
    })
}

/// A toolset, and the number of its active sessions.
pub(super) fn toolset_use(row: &Row) -> Result<(ToolsetInfo, u64)> {
    Ok((toolset_info(row)?, get::<i64>(row, "sessions")?.cast_unsigned()))
}

/// From `digest, envelope, args, idempotent, is_owned`.
pub(super) fn execution(row: &Row) -> Result<ExecutionRecord> {
    let envelope: Option<String> = get(row, "envelope")?;
    let status = match envelope {
        Some(text) => ExecutionStatus::Finished(parse::<Envelope>(&text)?.into()),
        None if get(row, "is_owned")? => ExecutionStatus::Running,
        None if get(row, "idempotent")? => ExecutionStatus::Abandoned,
        None => ExecutionStatus::InDoubt,
    };
    let args: Option<String> = get(row, "args")?;
    Ok(ExecutionRecord { digest: digest(row, "digest")?, args: args.map(Into::into), status })
}

/// The decision of the function `claim`; `None` when the session does not exist.
pub(super) fn claim_outcome(row: &Row) -> Result<Option<ClaimOutcome>> {
    let verdict: String = get(row, "verdict")?;
    Ok(Some(match verdict.as_str() {
        "new" => ClaimOutcome::New,
        "running" => ClaimOutcome::Running,
        "finished" => {
            let text: String = get(row, "recorded")?;
            ClaimOutcome::Finished(parse::<Envelope>(&text)?.into())
        }
        "in_doubt" => ClaimOutcome::InDoubt,
        "conflict" => ClaimOutcome::Conflict,
        "over_budget" => {
            let spent = u32::try_from(get::<i64>(row, "exceeded_spent")?).unwrap_or(u32::MAX);
            ClaimOutcome::OverBudget { meter: get(row, "exceeded_meter")?, spent }
        }
        "rate_limited" => match rate_exceeded(row)? {
            Some(exceeded) => ClaimOutcome::RateLimited(exceeded),
            None => return Err(Error::Corrupt("a claim exceeds a rate limit without a place".to_owned())),
        },
        "unapproved" => ClaimOutcome::Unapproved,
        "lease_expired" => ClaimOutcome::LeaseExpired,
        "no_session" => return Ok(None),
        other => return Err(Error::Corrupt(format!("a claim was decided as {other}"))),
    }))
}

/// From `exceeded_place` and `wait_ms`; `None` if no rate limit is used up.
pub(super) fn rate_exceeded(row: &Row) -> Result<Option<RateExceeded>> {
    let Some(place) = get::<Option<i64>>(row, "exceeded_place")? else { return Ok(None) };
    Ok(Some(RateExceeded {
        place: usize::try_from(place - 1).unwrap_or_default(),
        wait_ms: get(row, "wait_ms")?,
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

/// A row of the register of chains.
pub(super) fn registration(row: &Row) -> Result<AuditRow> {
    Ok(AuditRow {
        number: 0,
        chain: chain::REGISTER.to_owned(),
        position: get::<i64>(row, "position")?.cast_unsigned(),
        previous: get(row, "previous")?,
        hash: get(row, "hash")?,
        entry: get(row, "chain")?,
    })
}

pub(super) fn get<T: FromSqlOwned>(row: &Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| Error::Corrupt(format!("column {column}: {error}")))
}

/// The setting `synchronous_commit` of a change.
pub(super) const fn synchronous_commit(durability: Durability) -> &'static str {
    match durability {
        Durability::Committed => "on",
        Durability::Relaxed => "off",
    }
}

/// A column of the only row.
pub(super) fn get_only<T: FromSqlOwned>(rows: &[Row], column: &str) -> Result<T> {
    let row = rows.first().ok_or_else(|| Error::Corrupt("a statement returned no row".to_owned()))?;
    get(row, column)
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Corrupt(error.to_string()))
}

fn variant<T: DeserializeOwned>(name: String) -> Result<T> {
    serde_json::from_value(Value::String(name)).map_err(|error| Error::Corrupt(error.to_string()))
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
        assert_eq!(ids.map(|id| id_of_key(&key(id))), ids);
    }
}
