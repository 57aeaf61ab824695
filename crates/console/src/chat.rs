//! The chat page: its frame and the list of conversations. `chat.js` fills in the messages.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Notice, Time};

#[derive(Debug, Template)]
#[template(path = "chat.html")]
pub struct ChatPage {
    pub layout: Layout,
    /// The line below the title: the model that answers.
    pub subline: String,
    pub notices: Vec<Notice>,
    /// The id of the session that is shown; empty for a new conversation.
    pub session: String,
    /// The session has ended: it can be read, not continued.
    pub is_ended: bool,
    /// The user's own conversations, newest first.
    pub conversations: Vec<Conversation>,
    /// Suggested first messages.
    pub suggestions: Vec<String>,
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub session: String,
    /// The first message.
    pub title: String,
    /// In milliseconds since 1970.
    pub created_at: i64,
}

impl Conversation {
    fn time(&self) -> Time {
        Time(self.created_at)
    }
}
