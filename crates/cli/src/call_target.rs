//! Makes the calls of a command: in this process, which has opened the store, or through the server that uses it.

use std::sync::Arc;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use toolwright_contract::{ClientEnvelope, Envelope, ErrorKind, Mode, Principal};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, PendingQuery, PendingScope};
use toolwright_orchestrator::{CallRequest, Orchestrator, ToolCall, begun_task};
use toolwright_registry::hex;

use crate::command::call::CLIENT_ID;
use crate::server_client::{ServerClient, encode};

pub enum CallTarget {
    Own(Orchestrator),
    Server(ServerClient),
}

/// A session, as a command needs to know it.
pub struct SessionInfo {
    pub mode: Mode,
    pub principal: Principal,
    /// Its toolset can be called.
    pub is_loaded: bool,
}

/// An envelope, as it is printed.
pub struct Answer {
    pub envelope: Value,
    pub is_ok: bool,
    /// The confirmation request that the call waits for.
    pub question: Option<ConfirmationPrompt>,
}

pub struct ConfirmationPrompt {
    pub id: String,
    pub preview: String,
    pub token: Option<String>,
}

/// A waiting confirmation request.
pub struct Waiting {
    pub id: String,
    pub session: String,
}

impl CallTarget {
    pub async fn session(&self, id: &str) -> Result<Option<SessionInfo>> {
        match self {
            Self::Own(orchestrator) => {
                let Some(session) = orchestrator.session(id).await? else { return Ok(None) };
                let is_loaded = orchestrator.runtime_for(&session).await?.is_some();
                let (mode, principal) = (session.mode, session.principal.clone());
                Ok(Some(SessionInfo { mode, principal, is_loaded }))
            }
            Self::Server(server) => {
                let path = format!("/v1/sessions/{}", encode(id));
                match server.send(Method::GET, &path, None, None).await? {
                    Ok(session) => {
                        SessionInfo::from_json(&session).map(Some).ok_or_else(|| server.unexpected())
                    }
                    Err(refusal) if refusal.status == 404 => Ok(None),
                    Err(refusal) => Err(server.failure(&refusal).into()),
                }
            }
        }
    }

    pub async fn create_session(&self, new: NewSession) -> Result<String> {
        match self {
            Self::Own(orchestrator) => Ok(orchestrator.create_session(new).await?.id.clone()),
            Self::Server(server) => server.create_session(new).await,
        }
    }

    pub async fn end_session(&self, id: &str) -> Result<()> {
        match self {
            Self::Own(orchestrator) => Ok(orchestrator.end_session(id).await?),
            Self::Server(server) => {
                let path = format!("/v1/sessions/{}", encode(id));
                server.get_answer(Method::DELETE, &path, None, None).await.map(drop)
            }
        }
    }

    /// Begins a turn and makes the call in it.
    pub async fn call(&self, session: &str, call: ToolCall) -> Result<Answer> {
        match self {
            Self::Own(orchestrator) => {
                orchestrator.begin_turn(session).await?;
                let envelope = orchestrator.call(CallRequest::new(session, call)).await;
                Answer::new(&*with_result(orchestrator, envelope).await?)
            }
            Self::Server(server) => {
                let turn = format!("/v1/sessions/{}/turn", encode(session));
                server.get_answer(Method::POST, &turn, None, Some(json!({}))).await?;
                let path = format!("/v1/tools/{}/call", encode(&call.tool));
                let mut body = json!({ "args": call.args, "sessionId": session });
                if let Some(id) = call.id {
                    body["executionId"] = id.into();
                }
                server.get_answer(Method::POST, &path, None, Some(body)).await.map(Answer::from_json)
            }
        }
    }

    /// Approves a call: with its token, or as the user of the terminal by its id.
    pub async fn approve(&self, session: &str, token: &str) -> Result<Answer> {
        match self {
            Self::Own(orchestrator) => {
                let proof = if token.contains('.') { AnswerProof::Token } else { AnswerProof::Transport };
                let (client_id, by) = (CLIENT_ID, CLIENT_ID);
                let approver = Approver { token, proof, session, client_id, by, principal: None };
                let envelope = orchestrator.approve(&approver, None).await?;
                Answer::new(&*with_result(orchestrator, envelope).await?)
            }
            Self::Server(server) => {
                let path = format!("/v1/confirmations/{}/approve", encode(token));
                server.get_answer(Method::POST, &path, None, Some(json!({}))).await.map(Answer::from_json)
            }
        }
    }

    /// The waiting requests of the terminal about this call: in one session, or in all of a principal.
    pub async fn waiting(
        &self,
        session: Option<&str>,
        principal: &Principal,
        call: &ToolCall,
    ) -> Result<Vec<Waiting>> {
        match self {
            Self::Own(orchestrator) => {
                let key = principal.key();
                let scope = session.map_or(PendingScope::Principal(&key), PendingScope::Session);
                let page = orchestrator.pending_page(PendingQuery::all(scope)).await?;
                let is_same = |request: &&Arc<_>| is_about(request, call);
                let waiting = page.requests.iter().filter(is_same);
                Ok(waiting.map(|one| Waiting { id: one.id.clone(), session: one.session.clone() }).collect())
            }
            Self::Server(server) => {
                let (path, by) = match session {
                    Some(id) => (format!("/v1/confirmations?limit=1000&sessionId={}", encode(id)), None),
                    None => ("/v1/confirmations?limit=1000".to_owned(), Some(principal)),
                };
                let page = server.get_answer(Method::GET, &path, by, None).await?;
                let digest = hex(&call.digest());
                let is_same = |one: &&Value| one["clientId"] == CLIENT_ID && one["callDigest"] == digest;
                let all = page["confirmations"].as_array().into_iter().flatten();
                Ok(all.filter(is_same).filter_map(Waiting::from_json).collect())
            }
        }
    }

    /// The page of a call that failed inside a server. The cause is in the log of the server, not in the envelope.
    pub fn failure_page(&self, session: &str, answer: &Answer) -> Option<String> {
        let Self::Server(server) = self else { return None };
        if answer.envelope["error"]["type"] != ErrorKind::Internal.as_str() {
            return None;
        }
        let id = answer.envelope["meta"]["executionId"].as_str()?;
        Some(format!("{}/calls/{}?session={}", server.file.url, encode(id), encode(session)))
    }

    /// Waits until everything is written.
    pub async fn flush(&self) -> Result<()> {
        match self {
            Self::Own(orchestrator) => Ok(orchestrator.store().flush().await?),
            Self::Server(_) => Ok(()),
        }
    }
}

/// The result of a call, which is that of its task if it runs in the background: this process runs it, and must not end
/// before.
pub async fn with_result(orchestrator: &Orchestrator, envelope: Arc<Envelope>) -> Result<Arc<Envelope>> {
    let Some(id) = begun_task(&envelope) else { return Ok(envelope) };
    let Some(ended) = orchestrator.wait_for_task(id).await? else { return Ok(envelope) };
    Ok(orchestrator.task_envelope(&ended).await?.unwrap_or(envelope))
}

fn is_about(request: &toolwright_orchestrator::store::ConfirmationRecord, call: &ToolCall) -> bool {
    request.client_id == CLIENT_ID && request.is_about(&call.tool, &call.args)
}

impl SessionInfo {
    fn from_json(session: &Value) -> Option<Self> {
        let principal = &session["principal"];
        let roles = principal["roles"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(Self {
            mode: Mode::from_word(session["mode"].as_str()?)?,
            principal: Principal {
                id: principal["id"].as_str()?.to_owned(),
                org: principal["org"].as_str().map(str::to_owned),
                roles: roles.collect(),
            },
            is_loaded: true,
        })
    }
}

impl Waiting {
    fn from_json(request: &Value) -> Option<Self> {
        let text = |name: &str| request[name].as_str().map(str::to_owned);
        Some(Self { id: text("confirmationId")?, session: text("sessionId")? })
    }
}

impl Answer {
    pub fn new(envelope: &Envelope) -> Result<Self> {
        Ok(Self::from_json(serde_json::to_value(ClientEnvelope(envelope))?))
    }

    pub fn from_json(envelope: Value) -> Self {
        let request = &envelope["error"]["details"]["confirmation_request"];
        let text = |name: &str| request[name].as_str().map(str::to_owned);
        let is_question = envelope["error"]["type"] == ErrorKind::ConfirmationRequired.as_str();
        let question = text("confirmation_id").filter(|_| is_question).map(|id| ConfirmationPrompt {
            id,
            preview: text("preview").unwrap_or_default(),
            token: text("confirmation_token"),
        });
        Self { is_ok: envelope["ok"] == true, question, envelope }
    }
}
