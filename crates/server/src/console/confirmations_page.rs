//! `/confirmations`: the pending confirmation requests, and their answers. An admin answers any request; others answer
//! those of their own sessions, once they have signed in: a program that has their key needs the token of the request,
//! over REST.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_console::Page;
use toolwright_console::confirmations::{ConfirmationsPage, WaitingRequest};
use toolwright_console::format::{pretty, shorten, span, url_part};
use toolwright_console::parts::{Code, CsrfField, Notice, Pager, Time, Tone};
use toolwright_contract::Principal;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error, request_id};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, PendingQuery, PendingScope};

use super::calls_page::call_address;
use super::layout::count_pending;
use super::{form, layout, page, redirect, refused_page};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::rest::confirmations::{parse_place, to_problem};

/// Requests on a page.
const PAGE: usize = 20;
const MAX_REASON_BYTES: usize = 500;
/// The most bytes of the arguments, and characters of the preview, that the page shows of each request.
const MAX_ARGS: usize = 16 << 10;
const MAX_PREVIEW: usize = 2000;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    page(&view(&request, None).await?)
}

/// How many requests wait, for the badge of all pages.
pub(crate) async fn count(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    Ok(json::response(&json!({ "waiting": count_pending(&request).await? })))
}

/// Approves a call, with edited arguments if the form has them, and redirects to its page.
pub(crate) async fn approve(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read(&mut request).await?;
    let confirmation = find(&request).await?;
    let edited = match form.get("args").map(serde_json::from_str::<Map<String, Value>>).transpose() {
        Ok(edited) => edited.map(Value::Object),
        Err(error) => {
            let error = format!("The arguments must be a JSON object: {error}.");
            return refused_page(&view(&request, Some((&confirmation.id, error, form.get("args")))).await?);
        }
    };
    let approved = request.app.orchestrator.approve(&approver(&request, &confirmation)?, edited).await;
    answered(&request, &confirmation, approved.map(drop), form.get("args")).await
}

pub(crate) async fn reject(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read(&mut request).await?;
    let confirmation = find(&request).await?;
    let reason = form.get("reason").map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| reason[..reason.floor_char_boundary(MAX_REASON_BYTES)].to_owned());
    let rejected = request.app.orchestrator.reject(&approver(&request, &confirmation)?, reason).await;
    answered(&request, &confirmation, rejected.map(drop), None).await
}

/// Redirects to the call, or shows the error of the answer beside the request.
async fn answered(
    request: &ApiRequest<'_>,
    confirmation: &ConfirmationRecord,
    outcome: Result<(), Error>,
    args: Option<&str>,
) -> ApiResult {
    match outcome {
        Ok(()) => Ok(redirect(&call_address(&confirmation.session, &confirmation.execution))),
        Err(Error::Edited(message)) => {
            refused_page(&view(request, Some((&confirmation.id, message, args))).await?)
        }
        Err(error) => Err(to_problem(error, &confirmation.id)),
    }
}

/// The request that the path names, if this user may answer it.
async fn find(request: &ApiRequest<'_>) -> Result<Arc<ConfirmationRecord>, Problem> {
    let unknown = || Problem::not_found("Confirmation request", request_id(request.parameter));
    let confirmation = request.app.orchestrator.store().confirmation(request.parameter).await?;
    let confirmation = confirmation.ok_or_else(unknown)?;
    if !request.is_admin() {
        request.own_session(&confirmation.session).await.map_err(|_| unknown())?;
        if !can_answer(request) {
            let detail = "Sign in to answer here, or send the token of the request over REST.";
            return Err(Problem::new(Kind::FORBIDDEN, detail));
        }
    }
    Ok(confirmation)
}

/// Whether this user may answer here: an admin, or a signed-in user.
fn can_answer(request: &ApiRequest<'_>) -> bool {
    request.is_admin() || request.app.auth.is_signed_in(&request.head.headers)
}

fn approver<'a>(
    request: &'a ApiRequest<'_>,
    confirmation: &'a ConfirmationRecord,
) -> Result<Approver<'a>, Problem> {
    let principal: &Arc<Principal> = request.principal()?;
    Ok(Approver {
        token: &confirmation.id,
        proof: AnswerProof::Transport,
        session: &confirmation.session,
        client_id: &confirmation.client_id,
        by: &principal.id,
        principal: request.caller()?.map(|principal| &**principal),
    })
}

/// The page; `failed` is a request whose answer was refused, why, and the arguments of that answer.
async fn view(
    request: &ApiRequest<'_>,
    failed: Option<(&str, String, Option<&str>)>,
) -> Result<ConfirmationsPage, Problem> {
    let after = match request.head.method.is_safe() {
        true => request.query(["after"])?[0].as_deref().map(str::to_owned),
        false => None,
    };
    let place = after.as_deref().map(parse_place).transpose()?;
    let key = request.principal()?.key();
    let scope = if request.is_admin() { PendingScope::All } else { PendingScope::Principal(&key) };
    let query = PendingQuery { scope, after: place, limit: PAGE };
    let found = request.app.orchestrator.pending_page(query).await?;
    let layout = layout(request, Page::Confirmations, "Confirmations").await?;
    let mut requests = Vec::new();
    for pending in &found.requests {
        if request.is_admin() || request.own_session(&pending.session).await.is_ok() {
            let own = failed.as_ref().filter(|(id, _, _)| *id == pending.id);
            requests.push(waiting(request, pending, own, &layout.csrf).await?);
        }
    }
    let mut notices = Vec::new();
    if let Some((_, error, _)) = failed.filter(|(id, _, _)| !requests.iter().any(|one| one.id == *id)) {
        notices.push(Notice::new(Tone::Bad, "The answer was refused.", error));
    }
    let hint = if can_answer(request) { "" } else { "Sign in to answer." };
    Ok(ConfirmationsPage {
        layout,
        notices,
        requests,
        pager: Pager {
            next: found
                .next
                .map(|(at, id)| format!("/confirmations?after={}", url_part(&format!("{at}.{id}")))),
            first: after.map(|_| "/confirmations".to_owned()),
            ..Pager::default()
        },
        hint: hint.to_owned(),
    })
}

async fn waiting(
    request: &ApiRequest<'_>,
    pending: &ConfirmationRecord,
    failed: Option<&(&str, String, Option<&str>)>,
    csrf: &str,
) -> Result<WaitingRequest, Problem> {
    let orchestrator = &request.app.orchestrator;
    let args = pretty(&orchestrator.redacted_args(pending).await?);
    let whole = format!("/v1/confirmations/{}", url_part(&pending.id));
    let preview = shorten(&pending.preview, MAX_PREVIEW);
    let code = Code::limited("Arguments", args.as_str(), MAX_ARGS).with_whole(whole.as_str());
    let typed = failed.and_then(|(_, _, args)| *args).map(str::to_owned);
    let session = orchestrator.session(&pending.session).await?;
    let user = session.map(|session| shorten(&session.principal.id, 80)).unwrap_or_default();
    Ok(WaitingRequest {
        id: pending.id.clone(),
        tool: pending.tool.clone(),
        tool_href: format!("/tools/{}", url_part(&pending.tool)),
        version: pending.tool_version.clone(),
        whole_preview: (preview.len() < pending.preview.len()).then_some(whole),
        preview,
        editable: typed.or_else(|| (!code.is_cut()).then_some(args)),
        args: code,
        user,
        session: shorten(&pending.session, 32),
        session_href: format!("/sessions/{}", url_part(&pending.session)),
        call_href: call_address(&pending.session, &pending.execution),
        created: Time(pending.created_at),
        expires: Time(pending.expires_at),
        expires_at: pending.expires_at,
        remaining: span(pending.expires_at - orchestrator.now()),
        error: failed.map(|(_, error, _)| error.clone()),
        csrf: CsrfField(csrf.to_owned()),
        can_answer: can_answer(request),
    })
}
