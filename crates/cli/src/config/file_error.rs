//! The errors of a configuration file in plain words: the parser names Rust types, and lists all known fields.

use toolwright_contract::suggest::nearest;

const REFERENCE: &str = "docs/reference/configuration.md lists every setting";

/// Phrases of the parser's errors, each with its plain words. Longer phrases come first.
const PHRASES: [(&str, &str); 12] = [
    ("expected a nonzero u16", "expected a whole number from 1 to 65535"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u64", "expected a whole number of at least 0"),
    ("expected usize", "expected a whole number of at least 0"),
    ("expected f32", "expected a number"),
    ("expected a sequence", "expected a list such as [\"a\", \"b\"]"),
    ("expected a map", "expected a section"),
    ("expected struct", "expected a section:"),
    ("expected a borrowed string", "expected a text in quotes"),
    ("expected a string", "expected a text in quotes"),
    ("expected a boolean", "expected true or false"),
];

/// The message with its place in the file, and the help.
pub fn describe(error: &toml::de::Error) -> (String, String) {
    let (text, message) = (error.to_string(), error.message());
    let text = text.trim_end();
    // The message ends the text, after the excerpt of the file.
    let place = text.strip_suffix(message.trim_end()).unwrap_or_default();
    let help = match unknown_field(message) {
        Some((field, known)) => match nearest(field, known) {
            Some(near) => format!("did you mean `{near}`? {REFERENCE}"),
            None => REFERENCE.to_owned(),
        },
        None => REFERENCE.to_owned(),
    };
    (format!("{place}{}", in_plain_words(message)), help)
}

/// The field that is unknown, and those that are known there.
fn unknown_field(message: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let mut words = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    Some((words.next()?, words))
}

fn in_plain_words(message: &str) -> String {
    let message = message.trim_end();
    match PHRASES.iter().find(|(phrase, _)| message.contains(phrase)) {
        Some((phrase, words)) => message.replacen(phrase, words, 1),
        None => message.to_owned(),
    }
}
