//! The system prompt of a mode.

use askama::Template;

use crate::layout::Layout;
use crate::parts::Code;

#[derive(Debug, Template)]
#[template(path = "prompt.html")]
pub struct PromptPage {
    pub layout: Layout,
    /// Name and address of each mode, and whether it is shown.
    pub modes: Vec<ModeLink>,
    pub tools: String,
    pub characters: String,
    pub tokens: String,
    pub prompt: Code,
}

#[derive(Debug)]
pub struct ModeLink {
    pub mode: &'static str,
    pub is_current: bool,
}

/// About how many tokens a text has: English has four characters each, other text fewer.
pub fn estimate_tokens(text: &str) -> u64 {
    let (ascii, other) = text.chars().fold((0u64, 0u64), |(ascii, other), character| {
        if character.is_ascii() { (ascii + 1, other) } else { (ascii, other + 1) }
    });
    (ascii / 4 + other).max(u64::from(!text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_from_characters() {
        assert_eq!(
            [estimate_tokens(""), estimate_tokens("a"), estimate_tokens("four words of text")],
            [0, 1, 4]
        );
        assert_eq!(estimate_tokens("日本語"), 3);
    }
}
