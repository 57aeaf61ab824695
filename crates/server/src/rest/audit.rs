//! `GET /v1/audit`: the rows of the audit log in order, with their hashes; or, with a filter, the entries that match,
//! newest first.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{AuditFilter, AuditQuery, AuditRow, Backend, NumberedEntry};

use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

/// Audit entries in one response.
const MAX_ENTRIES: u64 = 1000;

type Parameter<'q> = Option<Cow<'q, str>>;

pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [after, before, limit, edited, from, until, principal, org, client, approver, tool, session, event] =
        request.query([
            "after",
            "before",
            "limit",
            "edited",
            "from",
            "until",
            "principal",
            "org",
            "client",
            "approver",
            "tool",
            "session",
            "event",
        ])?;
    let limit = number("limit", limit.as_deref(), 100, MAX_ENTRIES)? as usize;
    let texts = [principal, org, client, approver, tool, session, event];
    let filter = filter(texts, edited, [("from", from), ("until", until)])?;
    if before.is_none() && filter == AuditFilter::default() {
        let after = number("after", after.as_deref(), 0, i64::MAX as u64)?;
        return rows(&request, after, limit).await;
    }
    if after.is_some() {
        let detail = "The query parameter `after` is for the whole log; with a filter, use `before`.";
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    }
    let before =
        before.as_deref().map(|text| number("before", Some(text), 0, i64::MAX as u64)).transpose()?;
    let query = AuditQuery { filter, before, limit: limit.max(1) };
    let page = request.app.orchestrator.store().audit_page(&query).await?;
    let to_json =
        |NumberedEntry { number, entry }: &NumberedEntry| json!({ "number": number, "entry": entry });
    let entries: Vec<Value> = page.entries.iter().map(to_json).collect();
    Ok(json::response(&json!({ "entries": entries, "next": page.next })))
}

/// The rows after this number, oldest first.
async fn rows(request: &ApiRequest<'_>, after: u64, limit: usize) -> ApiResult {
    let rows = request.app.orchestrator.store().audit_rows(after, limit).await?;
    let next = rows.last().map_or(after, |row| row.number);
    let entries: Vec<Value> = rows.iter().map(row_to_json).collect();
    Ok(json::response(&json!({ "entries": entries, "next": next })))
}

/// The entry, with its position in the hash chain.
fn row_to_json(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry })
}

fn filter(
    texts: [Parameter<'_>; 7],
    edited: Parameter<'_>,
    times: [(&str, Parameter<'_>); 2],
) -> Result<AuditFilter, Problem> {
    let text = |value: Parameter<'_>| value.map(Cow::into_owned).filter(|text| !text.is_empty());
    let [principal, org, client, approver, tool, session, event] = texts.map(text);
    let edited = match edited.as_deref() {
        None | Some("" | "false") => false,
        Some("true") => true,
        Some(other) => {
            let detail = format!("The query parameter `edited` must be `true` or `false`, not `{other}`.");
            return Err(Problem::new(Kind::BAD_REQUEST, detail));
        }
    };
    let mut bounds = [None, None];
    for (bound, (name, value)) in bounds.iter_mut().zip(times) {
        let value = text(value);
        let time = value.as_deref().map(|text| number(name, Some(text), 0, i64::MAX as u64)).transpose()?;
        *bound = time.map(u64::cast_signed);
    }
    let [from, until] = bounds;
    let key = |id: String| Principal { id, org: org.clone(), roles: Vec::new() }.key();
    let principal = principal.map(key);
    Ok(AuditFilter {
        principal,
        org,
        client,
        approver,
        edited,
        tool,
        session,
        event,
        from,
        until,
        ..AuditFilter::default()
    })
}
