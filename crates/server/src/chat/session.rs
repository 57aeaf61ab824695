//! The session of a chat. Clients name their chats themselves; a name belongs to its principal, so that two users with
//! the same name do not meet.

use sha2::{Digest, Sha256};
use toolwright_agent::Agent;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::store::{self, Durability};

use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, new_session};
use crate::rest::sessions::{MAX_ID_BYTES as MAX_CLIENT_ID_BYTES, refuse_blocked};

const MAX_NAME_BYTES: usize = 200;

/// A conversation of the principal.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    /// The id of its session.
    pub session: String,
    /// The client sends the conversation with every request, and will not continue this one.
    pub is_temporary: bool,
}

impl Conversation {
    pub fn stored(session: &str) -> Self {
        Self { session: session.to_owned(), is_temporary: false }
    }

    pub fn temporary(self, is_temporary: bool) -> Self {
        Self { is_temporary, ..self }
    }
}

/// The agent of this server.
pub(super) fn agent<'a>(request: &'a ApiRequest<'_>) -> Result<&'a Agent, Problem> {
    let agent = request.app.options.agent.as_ref();
    agent.ok_or_else(|| Problem::new(Kind::UNAVAILABLE, "This server runs without an agent."))
}

/// The conversation with this name, if there is one: a session of the principal, or a chat that was begun under the
/// name.
pub(super) async fn find(request: &ApiRequest<'_>, name: &str) -> Result<Option<Conversation>, Problem> {
    check_name(name)?;
    let derived = derived_id("chat", request.principal()?, name);
    for id in [name, &derived] {
        let session = request.app.orchestrator.session(id).await?;
        if session.is_some_and(|session| crate::request::owns_session(request.principal, &session)) {
            return Ok(Some(Conversation::stored(id)));
        }
    }
    Ok(None)
}

/// The conversation with this name; a new one of this client if there is none.
pub(super) async fn open(
    request: &ApiRequest<'_>,
    name: &str,
    client_id: Option<&str>,
) -> Result<Conversation, Problem> {
    if let Some(conversation) = known(request, name).await? {
        return Ok(conversation);
    }
    let id = derived_id("chat", request.principal()?, name);
    let created = create_for(request, Some(id), client_id).await?;
    refuse_blocked_client(request, &created.session).await?;
    Ok(created)
}

/// As [`find`]; refuses a blocked client.
pub(super) async fn known(request: &ApiRequest<'_>, name: &str) -> Result<Option<Conversation>, Problem> {
    let found = find(request, name).await?;
    if let Some(conversation) = &found {
        refuse_blocked_client(request, &conversation.session).await?;
    }
    Ok(found)
}

/// Refuses a blocked client, whatever session it continues.
pub(super) async fn refuse_blocked_sender(
    request: &ApiRequest<'_>,
    client_id: Option<&str>,
) -> Result<(), Problem> {
    let Some(client_id) = client_id else { return Ok(()) };
    if client_id.is_empty() || client_id.len() > MAX_CLIENT_ID_BYTES {
        let detail = format!("`clientId` must have 1 to {MAX_CLIENT_ID_BYTES} bytes.");
        return Err(Problem::new(Kind::UNPROCESSABLE, detail));
    }
    refuse_blocked(request, request.principal()?, client_id, None).await
}

/// Refuses the client of a session if it is blocked.
pub(super) async fn refuse_blocked_client(request: &ApiRequest<'_>, session: &str) -> Result<(), Problem> {
    let client = client_id(request, session).await?;
    refuse_blocked(request, request.principal()?, &client, Some(session)).await
}

/// A new conversation. With an id, the one that was made with this id before.
pub(super) async fn create(request: &ApiRequest<'_>, id: Option<String>) -> Result<Conversation, Problem> {
    create_for(request, id, None).await
}

/// As [`create`]; without a client id the principal is the client.
async fn create_for(
    request: &ApiRequest<'_>,
    id: Option<String>,
    client_id: Option<&str>,
) -> Result<Conversation, Problem> {
    let mut new = new_session(request.principal()?, Mode::Text);
    new.client_id = client_id.map_or(new.client_id, str::to_owned);
    refuse_blocked(request, &new.principal, &new.client_id, None).await?;
    new.id.clone_from(&id);
    // The first turn is committed before anything is answered, and the session with it: one write to the disk for both.
    new.durability = Durability::Relaxed;
    match (request.app.orchestrator.create_session(new).await, id) {
        (Ok(session), _) => Ok(Conversation::stored(&session.id)),
        // A request of the same client was faster.
        (Err(store::Error::Exists(_)), Some(session)) => Ok(Conversation::stored(&session)),
        (Err(error), _) => Err(error.into()),
    }
}

/// An id that follows from the principal and a name.
pub(super) fn derived_id(prefix: &str, principal: &Principal, name: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [principal.org.as_deref().unwrap_or_default(), &principal.id, name] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    format!("{prefix}_{}", &toolwright_registry::hex(&hasher.finalize())[..32])
}

async fn client_id(request: &ApiRequest<'_>, session: &str) -> Result<String, Problem> {
    Ok(request.own_session(session).await?.client_id.clone())
}

fn check_name(name: &str) -> Result<(), Problem> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let detail = format!(
            "The id of a chat must have 1 to {MAX_NAME_BYTES} printable ASCII characters without spaces."
        );
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    }
    Ok(())
}
