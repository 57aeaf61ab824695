//! The voice page: its frame and the tools that can be called by voice. `voice-page.js` fills in the conversation;
//! without a voice model, `chat.js` does.

use askama::Template;

use crate::layout::Layout;
use crate::parts::Notice;

#[derive(Debug, Template)]
#[template(path = "voice.html")]
pub struct VoicePage {
    pub layout: Layout,
    /// The line below the title: the voice model.
    pub subline: String,
    pub notices: Vec<Notice>,
    /// Whether a voice model is configured; otherwise the page offers text chat.
    pub has_model: bool,
    pub tools: Vec<VoiceTool>,
    /// The session has more tools than `tools` lists.
    pub more_tools: usize,
}

/// A tool that may be used by voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceTool {
    pub id: String,
    pub summary: String,
    pub asks_first: bool,
}
