//! The agent of `toolwright chat`: the one of this process, which has opened the store, or the one of the server that
//! uses it.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::Result;
use reqwest::{Method, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_agent::{
    Agent, ApprovalAnswer, ConfirmationPart, EventBody, EventStream, Message, ToolPart, TurnRequest,
    UserMessage,
};
use toolwright_contract::Principal;

use crate::output::Failure;
use crate::server_client::{ServerClient, encode};

/// The media type of the events of a conversation log, a line each.
const LOG_LINES: &str = "application/x-ndjson";

pub enum ChatTarget {
    Own(Agent),
    Server(ServerClient),
}

/// The conversation of one session.
pub struct Conversation {
    pub target: ChatTarget,
    pub session: String,
    /// The principal of the session.
    pub principal: Principal,
}

/// An event of the conversation log, as it is printed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChatEvent {
    pub turn: String,
    pub at: i64,
    pub event: EventBody,
}

/// A call that waits for approval.
#[derive(Debug, Clone)]
pub struct ConfirmationPrompt {
    /// The id that the session's principal sends with the answer.
    pub id: String,
    /// The id of the confirmation request, for `toolwright approve` and `reject`.
    pub confirmation_id: String,
    pub preview: String,
    call_id: String,
    tool: String,
    /// The arguments of the call, as the conversation shows them.
    input: Value,
}

impl Conversation {
    /// Sends a message. The events are those of its turn.
    pub async fn say(&self, text: &str) -> Result<ChatEvents> {
        let message = UserMessage::new(text);
        match &self.target {
            ChatTarget::Own(agent) => {
                let turn = agent.start(TurnRequest::message(&self.session, message)).await.map_err(failed)?;
                self.own_events(agent, turn.resumed_at).await
            }
            ChatTarget::Server(server) => {
                let part = json!({ "type": "text", "text": text });
                self.post(server, json!({ "id": message.id, "role": "user", "parts": [part] })).await
            }
        }
    }

    /// Answers a question. The events are those of the turn's continuation.
    pub async fn answer(&self, question: &ConfirmationPrompt, approved: bool) -> Result<ChatEvents> {
        match &self.target {
            ChatTarget::Own(agent) => {
                let answer = ApprovalAnswer {
                    session: self.session.clone(),
                    approval_id: question.id.clone(),
                    approved,
                    reason: None,
                    args: None,
                    principal: Arc::new(self.principal.clone()),
                };
                let turn = agent.answer(answer).await.map_err(failed)?;
                self.own_events(agent, turn.resumed_at).await
            }
            ChatTarget::Server(server) => {
                let ConfirmationPrompt { id, call_id, tool, input, .. } = question;
                let part = json!({ "type": format!("tool-{tool}"), "toolCallId": call_id, "input": input,
                    "state": "approval-responded", "approval": { "id": id, "approved": approved } });
                self.post(server, json!({ "id": "answers", "role": "assistant", "parts": [part] })).await
            }
        }
    }

    /// Stops the turn that runs: reads are cancelled, writes finish.
    pub async fn stop(&self) -> Result<()> {
        match &self.target {
            ChatTarget::Own(agent) => Ok(agent.stop(&self.session).await.map(drop).map_err(failed)?),
            ChatTarget::Server(server) => {
                let path = format!("/api/chat/{}/stop", encode(&self.session));
                server.get_answer(Method::POST, &path, Some(&self.principal), Some(json!({}))).await.map(drop)
            }
        }
    }

    /// The calls that wait for approval.
    pub async fn open_questions(&self) -> Result<Vec<ConfirmationPrompt>> {
        match &self.target {
            ChatTarget::Own(agent) => {
                let history = agent.history(&self.session).await.map_err(failed)?;
                let replies = history.iter().filter_map(|message| match message {
                    Message::Assistant(reply) => Some(reply),
                    _ => None,
                });
                let waiting = replies.flat_map(|reply| reply.tools()).filter(|tool| tool.awaits_approval());
                Ok(waiting.filter_map(ConfirmationPrompt::from_tool).collect())
            }
            ChatTarget::Server(server) => {
                let path = format!("/api/chat/{}/messages", encode(&self.session));
                let page = server.get_answer(Method::GET, &path, Some(&self.principal), None).await?;
                let messages = page["messages"].as_array().into_iter().flatten();
                let parts = messages.flat_map(|message| message["parts"].as_array().into_iter().flatten());
                let waiting = parts.filter(|part| part["state"] == "approval-requested");
                Ok(waiting.filter_map(ConfirmationPrompt::from_part).collect())
            }
        }
    }

    async fn own_events(&self, agent: &Agent, after: u64) -> Result<ChatEvents> {
        Ok(ChatEvents::Own(agent.events(&self.session, after).await.map_err(failed)?))
    }

    async fn post(&self, server: &ServerClient, message: Value) -> Result<ChatEvents> {
        let body = json!({ "id": self.session, "trigger": "submit-message", "messages": [message] });
        let response = server.stream("/api/chat", LOG_LINES, &self.principal, body).await?;
        let server = server.clone();
        let lines = EventLines { server, response, text: Vec::new(), lines: VecDeque::new() };
        Ok(ChatEvents::Server(Box::new(lines)))
    }
}

impl ConfirmationPrompt {
    /// `input` has the arguments of the call.
    pub fn new(approval: &ConfirmationPart, input: Value) -> Self {
        Self {
            id: approval.id.clone(),
            confirmation_id: approval.confirmation_id().to_owned(),
            preview: approval.preview.clone(),
            call_id: approval.call_id.clone(),
            tool: approval.tool.clone(),
            input,
        }
    }

    fn from_tool(tool: &ToolPart) -> Option<Self> {
        Some(Self::new(tool.approval.as_ref()?, tool.call.args.clone()))
    }

    /// Reads the prompt from a part of a UI message.
    fn from_part(part: &Value) -> Option<Self> {
        let (approval, descriptor) = (&part["approval"], &part["approval"]["descriptor"]);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            id: text(&approval["id"])?,
            confirmation_id: text(&descriptor["confirmationId"])?,
            preview: text(&descriptor["preview"])?,
            call_id: text(&part["toolCallId"])?,
            tool: part["type"].as_str()?.strip_prefix("tool-")?.to_owned(),
            input: part["input"].clone(),
        })
    }
}

/// The events of one request, as they come.
pub enum ChatEvents {
    Own(EventStream),
    Server(Box<EventLines>),
}

impl ChatEvents {
    /// The next event; `None` when no turn runs any more. Nothing is lost if it is cancelled.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>> {
        match self {
            Self::Own(events) => Ok(events.next().await?.map(|event| ChatEvent {
                turn: event.turn.to_string(),
                at: event.at,
                event: event.body,
            })),
            Self::Server(lines) => lines.next().await,
        }
    }
}

/// A response of the server with a line for each event.
pub struct EventLines {
    server: ServerClient,
    response: Response,
    /// The begin of the next line.
    text: Vec<u8>,
    lines: VecDeque<Vec<u8>>,
}

impl EventLines {
    async fn next(&mut self) -> Result<Option<ChatEvent>> {
        loop {
            while let Some(line) = self.lines.pop_front() {
                if !line.is_empty() {
                    return self.event(&line).map(Some);
                }
            }
            let chunk = self.response.chunk().await.map_err(|error| self.server.unreachable(error))?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.text.extend_from_slice(&chunk);
            let Some(end) = self.text.iter().rposition(|byte| *byte == b'\n') else { continue };
            let rest = self.text.split_off(end + 1);
            let lines = std::mem::replace(&mut self.text, rest);
            self.lines.extend(lines[..end].split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }

    fn event(&self, line: &[u8]) -> Result<ChatEvent> {
        let line: Value = serde_json::from_slice(line).map_err(|_| self.server.unexpected())?;
        if let Some(failure) = line["failure"].as_str() {
            return Err(Failure::new(failure, "go on with `toolwright chat --continue`").into());
        }
        serde_json::from_value(line).map_err(|_| self.server.unexpected())
    }
}

fn failed(error: toolwright_agent::Error) -> Failure {
    Failure::new(error, "begin a new chat with `toolwright chat`, or see docs/how-to/chat.md")
}
