//! Asking a person: the question, its token, and who may answer.
//!
//! A token is `<id>.<secret>`: the id finds the question, the secret's hash is compared. What the question is bound to
//! (session, client, tool, version, arguments) is in the store, so there is nothing in a token to forge or to swap. The
//! token travels to the client; what the model reads never has it, and an answer must come from the user's side.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolwright_contract::{Confirmation as Rule, ErrorKind, Failure, ToolSpec};
use toolwright_registry::{hex, preview};

use crate::ids;
use crate::redact;
use crate::store::{Answer, Confirmation};

/// Who answers a question, and how they prove that it was put to them.
#[derive(Debug, Clone)]
pub struct Answerer<'a> {
    /// The token that the client was given; or the bare id, when the transport has authenticated the person.
    pub token: &'a str,
    pub proof: Proof,
    pub session: &'a str,
    pub client_id: &'a str,
    /// For the record.
    pub by: &'a str,
}

/// What makes an answer the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The whole token.
    Token,
    /// The transport knows that this is the session's own user: an utterance after the read-back, an elicitation.
    Transport,
}

/// Why an answer does not count. All that is wrong about a token looks the same from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("this confirmation does not exist, was answered already, has expired, or is not yours to answer")]
    Refused,
    #[error("the edited arguments do not fit: {0}")]
    Edited(String),
    #[error("the store cannot answer")]
    Store(#[from] crate::store::Error),
}

/// A token and what is kept of it.
pub(crate) struct Token {
    pub id: String,
    pub text: String,
    pub hash: [u8; 32],
}

impl Token {
    pub fn fresh() -> Self {
        Self::with(ids::fresh("conf"))
    }

    /// A new secret for a question that exists.
    pub fn with(id: String) -> Self {
        let secret = hex(&ids::random::<32>());
        let hash = Sha256::digest(&secret).into();
        Self { text: format!("{id}.{secret}"), hash, id }
    }
}

/// The question that a token is about, and its secret if it has one.
pub(crate) fn parts(token: &str) -> (&str, Option<&str>) {
    token.split_once('.').map_or((token, None), |(id, secret)| (id, Some(secret)))
}

/// Whether this answerer may answer this question.
pub(crate) fn may_answer(asked: &Confirmation, answerer: &Answerer<'_>, now: i64) -> bool {
    let secret = parts(answerer.token).1;
    let proven = match (answerer.proof, secret) {
        (_, Some(secret)) => same(&Sha256::digest(secret).into(), &asked.token_hash),
        (Proof::Transport, None) => true,
        (Proof::Token, None) => false,
    };
    proven
        && asked.answer == Answer::Pending
        && now < asked.expires_at
        && asked.session == answerer.session
        && asked.client_id == answerer.client_id
}

/// Compares in a time that tells nothing.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// What the person is shown.
pub(crate) fn preview(spec: &ToolSpec, shown: &Value) -> String {
    let template = match &spec.requires_confirmation {
        Rule::Rule(rule) => rule.preview.as_deref(),
        Rule::Always(_) => None,
    };
    let text = template.and_then(|template| preview::render(template, shown).ok());
    text.unwrap_or_else(|| format!("{}: {shown}", spec.description.trim_end_matches('.')))
}

/// The refusal that carries the question. `token` is for the client; see [`without_token`].
pub(crate) fn required(asked: &Confirmation, spec: &ToolSpec, token: &str) -> Failure {
    let message = format!("`{}` needs the user's approval first.", asked.tool);
    let mut failure = Failure::new(ErrorKind::ConfirmationRequired, message)
        .suggest("Tell the user what would be done and wait. It runs by itself once they approve: do not call it again.");
    failure.details = Some(Box::new(json!({ "confirmation_request": {
        "confirmation_id": asked.id,
        "tool": asked.tool,
        "args": redact::redacted(&spec.json_schema, &asked.args),
        "preview": asked.preview,
        "confirmation_token": token,
        "expires_at": asked.expires_at,
    } })));
    failure
}

/// Takes the token out of what a model will read.
pub(crate) fn without_token(details: &mut Value) {
    if let Some(request) = details.get_mut("confirmation_request").and_then(Value::as_object_mut) {
        request.remove("confirmation_token");
    }
}

/// What a call comes to whose question was answered with no, or not at all.
pub(crate) fn declined(asked: &Confirmation) -> Failure {
    let (message, suggestion) = match (&asked.answer, &asked.reason) {
        (Answer::Expired, _) => {
            ("Nobody approved this call in time.".to_owned(), "Ask the user whether they still want it.")
        }
        (_, Some(reason)) => (
            format!("The user declined this call: {reason}"),
            "Do not repeat it; ask what they want instead.",
        ),
        (_, None) => {
            ("The user declined this call.".to_owned(), "Do not repeat it; ask what they want instead.")
        }
    };
    Failure::new(ErrorKind::Permanent, message).suggest(suggestion)
}
