//! Text from outside in logs, on terminals and on pages: without characters that could forge a line or hide what is
//! there.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Control characters, line breaks and bidirectional controls as `\n`, `\t`, `\r` or `\u202e`; other text as it is. In
/// JSON text, whose control characters are escaped already, the result is the same value.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_all_but(text, |_| false)
}

/// As [`escape`], for text of several lines: line feeds stay.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_all_but(text, |character| character == '\n')
}

/// As [`escape`], for text that a page shows: line feeds, carriage returns and tabs stay.
pub fn escape_page(text: &str) -> Cow<'_, str> {
    escape_all_but(text, |character| matches!(character, '\n' | '\r' | '\t'))
}

fn escape_all_but(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Without an early exit the compiler checks many bytes at a time: every request's log line comes through here.
    if text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let needs_escape = |character: char| is_hidden(character) && !is_kept(character);
    let Some(first) = text.find(needs_escape) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut escaped = before.to_owned();
    for character in rest.chars() {
        match character {
            _ if !needs_escape(character) => escaped.push(character),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            // Writing to a `String` does not fail. All of them have four digits.
            _ => _ = write!(escaped, "\\u{:04x}", u32::from(character)),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character is not seen itself, but changes how other text looks: a control character, a line or paragraph
/// separator, or a bidirectional control.
pub fn is_hidden(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') || is_bidi_control(character)
}

/// Whether a character changes the direction of the text around it.
pub fn is_bidi_control(character: char) -> bool {
    matches!(
        character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_forge_or_hide_text_are_escaped() {
        let cases = [
            ("plain text, größer: \\ \"quoted\" 日本語", "plain text, größer: \\ \"quoted\" 日本語"),
            ("ok\n2026-01-01 forged", "ok\\n2026-01-01 forged"),
            ("\r\t\0\u{1b}[2J\u{7f}", "\\r\\t\\u0000\\u001b[2J\\u007f"),
            ("\u{85}\u{9b}31m", "\\u0085\\u009b31m"),
            ("\u{2028}\u{2029}", "\\u2028\\u2029"),
            ("a\u{202e}b\u{2066}c\u{61c}\u{200f}", "a\\u202eb\\u2066c\\u061c\\u200f"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape(text), expected);
        }
        assert_eq!(escape_lines("one\ntwo\u{1b}\r"), "one\ntwo\\u001b\\r");
        assert_eq!(escape_page("one\r\n\ttwo\u{202e}\0"), "one\r\n\ttwo\\u202e\\u0000");
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "a\u{202e}\n": ["\u{7f}\u{9b}\u{2028}\u{1b}\\"] });
        let text = value.to_string();
        let escaped = escape(&text);
        assert!(escaped != text && !escaped.contains(is_hidden));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
