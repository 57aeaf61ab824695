//! Why a request to the agent is refused. A failure of the model is not an error here: it ends the turn.

use toolwright_orchestrator::{confirmation_token, store};

/// Why a request is refused. The text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    #[error("the session `{0}` has ended: start a new one")]
    SessionEnded(String),
    #[error("the session `{0}` is a voice session: the text agent needs one of mode `text`")]
    WrongMode(String),
    #[error("the toolset of the session `{0}` is not loaded any more: start a new session")]
    ToolsetUnloaded(String),
    #[error("the message has {bytes} bytes, and at most {limit} are accepted: send a shorter one")]
    MessageTooLarge { bytes: usize, limit: usize },
    #[error("the message is empty: send some text")]
    EmptyMessage,
    #[error("a message id must have 1 to {limit} bytes")]
    MessageId { limit: usize },
    #[error("a picture must be an `https:` or `data:` URL")]
    Image,
    /// A turn of this session is running, here or on another server.
    #[error("the session is answering another message: wait until it has ended, or stop it")]
    Busy { turn: String },
    #[error("the client's tool `{0}` has the name of a tool of the server: rename it")]
    ClientToolName(String),
    #[error("no call `{0}` of a client's tool waits for a result")]
    UnknownClientCall(String),
    /// The confirmation request is unknown, expired, already answered, or belongs to another session.
    #[error("{0}")]
    Approval(#[from] confirmation_token::Error),
    #[error("the store is unavailable")]
    Store(#[from] store::Error),
}
