//! The name next to a contact: before it on the same line, or on a line of its own above it, as in a signature. A name
//! is two to five capitalized words.

use super::Span;
use crate::is_listed;

/// How far back to search.
const MAX_LOOKBACK_BYTES: usize = 400;
const MAX_LOOKBACK_LINES: usize = 5;
const MAX_NAME_WORDS: usize = 5;

/// Labels between a name and its contact.
const LABELS: &str = "at c cell contact correo courriel e e-mail email fax fon github handy home linkedin m mail \
    mob mobil mobile móvil office p phone ph private t tel telefon teléfono telephone téléphone web website work";

/// Lower-case words within names.
const PARTICLES: &str = "al bin da de del den der di do dos du el ibn la le ten van von zu y";

/// Capitalized words that are not names: greetings, closings and header fields.
const STOP_WORDS: &str = "address adresse all and ask atentamente at beste best bitte call cheers contact \
    cordialement dear email for from greetings grüße grüßen gruß hallo hello hey hi hola bonjour kind liebe many \
    merci my or please regards ruf saludos see sehr sincerely thank thanks the viele warm wishes with write your \
    you yours danke mit und our reach sent to cc bcc re subject betreff";

/// The name next to a contact.
pub fn find_name_near(text: &str, contact: Span) -> Option<&str> {
    let from = text.floor_char_boundary(contact.start.saturating_sub(MAX_LOOKBACK_BYTES));
    let mut lines = text[from..contact.start].rsplit('\n');
    let before = lines.next().unwrap_or_default();
    if before.trim_end().ends_with('<') && text[contact.end..].starts_with('>') {
        return display_name(before.trim_end().trim_end_matches('<'));
    }
    match strip_labels(before) {
        "" => name_on_line_above(lines),
        before => name_at_end(before),
    }
}

/// The display name of `Mira Okafor <mira@…>` or `"Okafor, Mira" <mira@…>`.
fn display_name(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let name = match before.strip_suffix('"') {
        Some(quoted) => quoted.rsplit('"').next()?,
        None => before.rsplit([',', ';', ':', '>', '\t', '"']).next()?,
    };
    let name = name.trim();
    (!name.is_empty() && name.chars().any(char::is_alphabetic)).then(|| name_at_end(name).unwrap_or(name))
}

/// Removes punctuation and labels before the contact: `Mira Okafor, tel.: ` becomes `Mira Okafor`.
fn strip_labels(before: &str) -> &str {
    let mut rest = before;
    loop {
        let trimmed = rest.trim_end_matches(|last: char| {
            last.is_whitespace()
                || matches!(last, ':' | ',' | '-' | '–' | '—' | '|' | '(' | '[' | '•' | '·' | '/' | '*')
        });
        let word = trimmed.trim_end_matches('.');
        let word = &word[word.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let is_label = is_listed(LABELS, &word.trim_start_matches(['(', '[']).to_lowercase());
        match is_label && !word.is_empty() {
            true => rest = trimmed.trim_end_matches('.').strip_suffix(word).unwrap_or_default(),
            false => return trimmed,
        }
    }
}

/// The name at the end of a text.
fn name_at_end(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let mut start = text.len();
    for word in text.rsplit(char::is_whitespace).filter(|word| !word.is_empty()).take(MAX_NAME_WORDS) {
        // The sentence before the name ends here.
        let ends_sentence = start < text.len() && word.ends_with('.') && word.chars().count() > 3;
        if ends_sentence || !is_name_word(word) || is_stop_word(word) {
            break;
        }
        start = word.as_ptr().addr() - text.as_ptr().addr();
    }
    as_name(&text[start..])
}

/// The topmost line of the same paragraph above the contact that holds only a name.
fn name_on_line_above<'t>(lines: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let block = lines.map(str::trim).take(MAX_LOOKBACK_LINES).take_while(|line| !line.is_empty());
    block.filter(|line| line.split_whitespace().all(is_name_word)).filter_map(as_name).last()
}

/// The text without leading particles, if it has two to five name words and no stop word.
fn as_name(text: &str) -> Option<&str> {
    let mut text = text.trim();
    while let Some((first, rest)) = text.split_once(char::is_whitespace)
        && is_listed(PARTICLES, first)
    {
        text = rest.trim_start();
    }
    let count = text.split_whitespace().filter(|word| !is_listed(PARTICLES, word)).count();
    ((2..=MAX_NAME_WORDS).contains(&count) && !text.split_whitespace().any(is_stop_word)).then_some(text)
}

fn is_stop_word(word: &str) -> bool {
    is_listed(STOP_WORDS, &word.trim_end_matches('.').to_lowercase())
}

fn is_name_word(word: &str) -> bool {
    if is_listed(PARTICLES, word) {
        return true;
    }
    // An elided particle, as in d'Arc.
    let word = word.strip_prefix("d'").or_else(|| word.strip_prefix("d’")).unwrap_or(word);
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.all(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '’' | '-' | '.'))
}
