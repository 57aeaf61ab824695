//! Answers to confirmation requests. They come from a client, so they are checked against the log and the store.

use std::sync::Arc;

use serde_json::Value;
use toolwright_agent::{Agent, ApprovalAnswer, Event, EventBody, Message, ToolPart, Turn};
use toolwright_contract::Principal;

use crate::problem::{Kind, Problem};

/// An answer as a wire has read it.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub approval_id: String,
    pub approved: bool,
    pub reason: Option<String>,
    /// Edited arguments.
    pub args: Option<Value>,
    /// The call that the client believes to answer, and its input; `None` where the wire has no place for them.
    pub claimed_call: Option<(String, Value)>,
}

/// A turn that answers have continued.
#[derive(Debug)]
pub(super) struct ContinuedTurn {
    pub turn: Turn,
    /// The position before the first event that follows the answers. Sent again, the same answers give the same.
    pub position: u64,
}

/// Gives all answers, or none: each must answer an open request of this conversation.
pub(super) async fn answer_all(
    agent: &Agent,
    session: &str,
    principal: &Arc<Principal>,
    answers: Vec<Answer>,
) -> Result<ContinuedTurn, Problem> {
    let history = agent.history(session).await?;
    if answers.is_empty() || !answers.iter().all(|answer| answers_open_request(answer, &history)) {
        return Err(answer_refused());
    }
    let count = answers.len();
    let mut continued: Option<ContinuedTurn> = None;
    for (index, answer) in answers.into_iter().enumerate() {
        let id = answer.approval_id.clone();
        let turn = agent
            .answer(ApprovalAnswer {
                session: session.to_owned(),
                approval_id: answer.approval_id,
                approved: answer.approved,
                reason: answer.reason,
                args: answer.args,
                principal: Arc::clone(principal),
            })
            .await?;
        let position = match turn.is_new {
            true => turn.resumed_at,
            false => resumed_at(agent, &turn, |body| is_decision(body, &id)).await?,
        };
        if index + 1 < count {
            // The turn pauses again for the next answer.
            let mut events = agent.events(session, turn.resumed_at).await?;
            while events.next().await?.is_some() {}
        }
        let position = continued.map_or(position, |earlier| earlier.position.min(position));
        continued = Some(ContinuedTurn { turn, position });
    }
    continued.ok_or_else(answer_refused)
}

/// The position before the continuation that the result of a client's call has begun.
pub(super) async fn results_position(agent: &Agent, turn: &Turn, call_id: &str) -> Result<u64, Problem> {
    let has_result = |body: &EventBody| match body {
        EventBody::ClientResults { results } => results.iter().any(|result| result.call_id == call_id),
        _ => false,
    };
    match turn.is_new {
        true => Ok(turn.resumed_at),
        false => resumed_at(agent, turn, has_result).await,
    }
}

/// The position before the continuation in which an event was written.
async fn resumed_at(
    agent: &Agent,
    turn: &Turn,
    is_wanted: impl Fn(&EventBody) -> bool,
) -> Result<u64, Problem> {
    let mut events = agent.events(&turn.session, turn.start).await?;
    let (mut before, mut resumed) = (turn.start, turn.start);
    while let Some(Event { position, body, .. }) = events.next().await? {
        if matches!(body, EventBody::TurnResumed) {
            resumed = before;
        }
        if is_wanted(&body) {
            return Ok(resumed);
        }
        before = position;
    }
    Err(answer_refused())
}

fn is_decision(body: &EventBody, id: &str) -> bool {
    matches!(body, EventBody::ApprovalDecided { approval_id, .. } if approval_id == id)
}

/// Whether the answer is to a request of this conversation, for the call that the client names.
fn answers_open_request(answer: &Answer, history: &[Message]) -> bool {
    let Some(tool) = find_approval(history, &answer.approval_id) else { return false };
    let is_about = |(call, input): &(String, Value)| *call == tool.call.id && is_same(input, &tool.call.args);
    answer.claimed_call.as_ref().is_none_or(is_about)
}

/// Whether JavaScript reads the same value from both: it has one kind of number.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

fn find_approval<'a>(history: &'a [Message], id: &str) -> Option<&'a ToolPart> {
    let replies = history.iter().rev().filter_map(|message| match message {
        Message::Assistant(reply) => Some(reply),
        _ => None,
    });
    replies
        .flat_map(toolwright_agent::AssistantMessage::tools)
        .find(|tool| tool.approval.as_ref().is_some_and(|approval| approval.id == id))
}

pub(super) fn answer_refused() -> Problem {
    let detail = "The approval does not exist, has been answered or has expired, or is about another call. Load the \
                  conversation again.";
    Problem::new(Kind::CONFLICT, detail).with_code("approval_refused")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_same;

    #[test]
    fn numbers_that_javascript_writes_differently_are_the_same() {
        assert!(is_same(&json!({ "a": [20], "b": 1000 }), &json!({ "b": 1e3, "a": [20.0] })));
        assert!(is_same(&json!(9007199254740992_u64), &json!(9007199254740993_u64)));
        for other in [json!({ "a": 21 }), json!({ "a": "20" }), json!({ "a": 20, "b": 1 }), json!({})] {
            assert!(!is_same(&json!({ "a": 20 }), &other), "{other}");
        }
    }
}
