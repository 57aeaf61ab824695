//! Confirmation requests: their tokens, their texts, and who may answer them.
//!
//! A token is `<id>.<secret>`: the id finds the request, the secret's hash is compared. What the request is bound to
//! (session, client, tool, version, arguments) is in the store, so a token holds nothing that could be forged or
//! swapped. The token goes to the client; a model never sees it, so an answer must come from the user.
//!
//! After a reload the client no longer has the token. The conversation shows its owner an [`answer_id`] instead, which
//! is derived from the hash of the token.

use sha2::{Digest, Sha256};
use toolwright_contract::{ConfirmationRequest, ConfirmationToken, ErrorKind, Failure, Principal, ToolSpec};
use toolwright_registry::hex;

use crate::ids;
use crate::redaction;
use crate::store::{ApproverRecord, ConfirmationRecord, ConfirmationStatus};

/// Who answers a confirmation request, and how they prove that it was sent to them.
#[derive(Debug, Clone)]
pub struct Approver<'a> {
    /// The client's token, or an [`answer_id`]; or the bare id, when the transport has authenticated the person.
    pub token: &'a str,
    pub proof: AnswerProof,
    pub session: &'a str,
    pub client_id: &'a str,
    /// The approver's name in the audit log.
    pub by: &'a str,
    /// The approver as the transport has authenticated them. The session's own principal must still have the role that
    /// the tool requires; an admin vouches for the call.
    pub principal: Option<&'a Principal>,
}

impl Approver<'_> {
    /// The approver as the store and the audit name them.
    pub(crate) fn record(&self) -> ApproverRecord {
        let via = match self.proof {
            AnswerProof::Token => "token",
            AnswerProof::Conversation => "conversation",
            AnswerProof::Transport => "transport",
        };
        let org = self.principal.and_then(|principal| principal.org.clone());
        ApproverRecord { id: self.by.to_owned(), org, via: via.to_owned() }
    }
}

/// The proof that an answer is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProof {
    /// The whole token.
    Token,
    /// The id that the conversation has shown to the principal of its session: see [`answer_id`].
    Conversation,
    /// The transport has authenticated the session's user: an utterance after the read-back, an elicitation.
    Transport,
}

/// Why an answer does not count. Only a sender with the right token, or whom the transport has authenticated, learns
/// whether the request was answered or has expired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the confirmation request does not exist, or belongs to another session or client")]
    Refused,
    #[error("the answer needs the token of the confirmation request")]
    TokenRequired,
    #[error(
        "the token of the confirmation request is wrong; if the call was sent again, only the newest token is valid"
    )]
    WrongToken,
    #[error("the confirmation request was answered already")]
    Answered,
    #[error("the confirmation request has expired; the call can be made again")]
    Expired,
    #[error("the approver may not use the tool: {0}")]
    Forbidden(String),
    #[error("the edited arguments are invalid: {0}")]
    Edited(String),
    #[error("the store is unavailable")]
    Store(#[from] crate::store::Error),
}

/// A new secret, and the id and hash that are stored.
pub(crate) struct NewToken {
    pub id: String,
    pub secret: String,
    pub hash: [u8; 32],
}

impl NewToken {
    pub fn random() -> Self {
        let secret = hex(&ids::random::<32>());
        let hash = Sha256::digest(&secret).into();
        Self { id: ids::random_id("conf"), secret, hash }
    }
}

/// The id under which a conversation shows a request to its owner: `<id>.<key>`. The key follows from the hash of the
/// token, which only the store knows, and from session and principal: it cannot be guessed, and it is of no use in
/// another session or to another principal.
pub fn answer_id(request: &ConfirmationRecord, owner: &Principal) -> String {
    format!("{}.{}", request.id, conversation_key(&request.token_hash, &request.session, owner))
}

/// As [`answer_id`], of a request that has just been made. Without a token only the `admin` role can answer it: the
/// bare id.
pub fn new_answer_id(request: &ConfirmationRequest, session: &str, owner: &Principal) -> String {
    let token = request.token.as_ref().and_then(|token| split_token(token.reveal()).1);
    let Some(secret) = token else { return request.confirmation_id.clone() };
    let key = conversation_key(&Sha256::digest(secret).into(), session, owner);
    format!("{}.{key}", request.confirmation_id)
}

/// The id of the request in a token or an [`answer_id`].
pub fn request_id(token: &str) -> &str {
    split_token(token).0
}

fn conversation_key(token_hash: &[u8; 32], session: &str, owner: &Principal) -> String {
    let org = owner.org.as_deref().unwrap_or_default();
    hex(&ids::hash_of_parts([&hex(token_hash), session, org, &owner.id])[..16])
}

/// Splits a token into the id and the secret, if it has one.
pub(crate) fn split_token(token: &str) -> (&str, Option<&str>) {
    token.split_once('.').map_or((token, None), |(id, secret)| (id, Some(secret)))
}

/// Whether this approver may answer this request.
pub(crate) fn check_answer(
    request: &ConfirmationRecord,
    approver: &Approver<'_>,
    now: i64,
) -> Result<(), Error> {
    if request.session != approver.session || request.client_id != approver.client_id {
        return Err(Error::Refused);
    }
    match (approver.proof, split_token(approver.token).1) {
        (AnswerProof::Conversation, key) => check_key(request, approver, key.unwrap_or_default())?,
        (_, Some(secret)) if !constant_time_eq(&Sha256::digest(secret), &request.token_hash) => {
            return Err(Error::WrongToken);
        }
        (AnswerProof::Token, None) => return Err(Error::TokenRequired),
        _ => {}
    }
    match request.status_at(now) {
        ConfirmationStatus::Pending => Ok(()),
        ConfirmationStatus::Expired => Err(Error::Expired),
        ConfirmationStatus::Approved | ConfirmationStatus::Rejected | ConfirmationStatus::Used => {
            Err(Error::Answered)
        }
    }
}

/// Refuses a key that the conversation has not shown to this principal.
fn check_key(request: &ConfirmationRecord, approver: &Approver<'_>, key: &str) -> Result<(), Error> {
    let principal = approver.principal.ok_or(Error::Refused)?;
    let expected = conversation_key(&request.token_hash, &request.session, principal);
    if constant_time_eq(key.as_bytes(), expected.as_bytes()) { Ok(()) } else { Err(Error::Refused) }
}

fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The refusal of a call that needs approval. `secret` is for the client; a call of a handler has none.
pub(crate) fn confirmation_required(
    record: &ConfirmationRecord,
    spec: &ToolSpec,
    secret: Option<String>,
) -> Failure {
    let message = format!("`{}` needs the user's approval first.", record.tool);
    let mut failure = Failure::new(ErrorKind::ConfirmationRequired, message).suggest(
        "Tell the user what the call would do and wait. It runs once they approve: do not call it again.",
    );
    failure.confirmation = Some(Box::new(ConfirmationRequest {
        confirmation_id: record.id.clone(),
        tool: record.tool.clone(),
        args: redaction::redacted(&spec.json_schema, &record.args),
        preview: record.preview.clone(),
        expires_at: record.expires_at,
        token: secret.map(|secret| ConfirmationToken::new(format!("{}.{secret}", record.id))),
    }));
    failure
}

/// The failure of a call whose confirmation request was rejected or has expired.
pub(crate) fn declined(record: &ConfirmationRecord) -> Failure {
    if record.status == ConfirmationStatus::Expired {
        return Failure::new(ErrorKind::Permanent, "The call was not approved in time.")
            .suggest("Ask the user whether they still want it.");
    }
    let message = match &record.reason {
        Some(reason) => format!("The user declined this call: {reason}"),
        None => "The user declined this call.".to_owned(),
    };
    Failure::new(ErrorKind::Permanent, message)
        .suggest("Do not repeat it; ask the user what they want instead.")
}
