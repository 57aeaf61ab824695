//! The name that stands with a contact: before it on its line, or on a line of its own above, as in a signature. A name is
//! one to five words with capitals; what is not written like one is not guessed.

use super::Span;

/// How far is looked back, in bytes and in lines.
const WINDOW: usize = 400;
const LINES: usize = 5;
const WORDS: usize = 5;

/// What stands between a name and its contact.
const LABELS: &[&str] = &[
    "at",
    "c",
    "cell",
    "contact",
    "correo",
    "courriel",
    "e",
    "e-mail",
    "email",
    "fax",
    "fon",
    "github",
    "handy",
    "home",
    "linkedin",
    "m",
    "mail",
    "mob",
    "mobil",
    "mobile",
    "móvil",
    "office",
    "p",
    "phone",
    "ph",
    "private",
    "t",
    "tel",
    "telefon",
    "teléfono",
    "telephone",
    "téléphone",
    "web",
    "website",
    "work",
];

/// Words of names that have no capital.
const PARTICLES: &[&str] = &[
    "al", "bin", "da", "de", "del", "den", "der", "di", "do", "dos", "du", "el", "ibn", "la", "le", "ten",
    "van", "von", "zu", "y",
];

/// Words with a capital that begin a line and are no names.
const NO_NAMES: &[&str] = &[
    "address",
    "adresse",
    "all",
    "and",
    "ask",
    "atentamente",
    "at",
    "beste",
    "best",
    "bitte",
    "call",
    "cheers",
    "contact",
    "cordialement",
    "dear",
    "email",
    "for",
    "from",
    "greetings",
    "grüße",
    "grüßen",
    "gruß",
    "hallo",
    "hello",
    "hey",
    "hi",
    "hola",
    "bonjour",
    "kind",
    "liebe",
    "many",
    "merci",
    "my",
    "or",
    "please",
    "regards",
    "ruf",
    "saludos",
    "see",
    "sehr",
    "sincerely",
    "thank",
    "thanks",
    "the",
    "viele",
    "warm",
    "wishes",
    "with",
    "write",
    "your",
    "you",
    "yours",
    "danke",
    "mit",
    "und",
    "our",
    "reach",
    "sent",
    "to",
    "cc",
    "bcc",
    "re",
    "subject",
    "betreff",
];

/// The name near a contact.
pub fn near(text: &str, contact: Span) -> Option<&str> {
    let from = text.floor_char_boundary(contact.start.saturating_sub(WINDOW));
    let mut lines = text[from..contact.start].rsplit('\n');
    let before = lines.next().unwrap_or_default();
    if before.trim_end().ends_with('<') && text[contact.end..].starts_with('>') {
        return display_name(before.trim_end().trim_end_matches('<'));
    }
    match without_labels(before) {
        "" => above(lines),
        before => last_words(before),
    }
}

/// `Mira Okafor <mira@…>`, `"Okafor, Mira" <mira@…>`: all of it belongs to the address.
fn display_name(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let name = match before.strip_suffix('"') {
        Some(quoted) => quoted.rsplit('"').next()?,
        None => before.rsplit([',', ';', ':', '>', '\t', '"']).next()?,
    };
    let name = name.trim();
    (!name.is_empty() && name.chars().any(char::is_alphabetic)).then(|| last_words(name).unwrap_or(name))
}

/// What stands before the contact, without what only leads to it: `Mira Okafor, tel.: ` becomes `Mira Okafor`.
fn without_labels(before: &str) -> &str {
    let mut rest = before;
    loop {
        let trimmed = rest.trim_end_matches(|last: char| {
            last.is_whitespace()
                || matches!(last, ':' | ',' | '-' | '–' | '—' | '|' | '(' | '[' | '•' | '·' | '/' | '*')
        });
        let word = trimmed.trim_end_matches('.');
        let word = &word[word.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let is_label = LABELS.contains(&word.trim_start_matches(['(', '[']).to_lowercase().as_str());
        match is_label && !word.is_empty() {
            true => rest = trimmed.trim_end_matches('.').strip_suffix(word).unwrap_or_default(),
            false => return trimmed,
        }
    }
}

/// The name at the end of a text.
fn last_words(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let mut start = text.len();
    for word in text.rsplit(char::is_whitespace).filter(|word| !word.is_empty()).take(WORDS) {
        // A sentence that ends before the name, or a word that begins one.
        let is_other = start < text.len() && word.ends_with('.') && word.chars().count() > 3;
        if is_other || !is_name_word(word) || is_greeting(word) {
            break;
        }
        start = word.as_ptr().addr() - text.as_ptr().addr();
    }
    as_name(&text[start..])
}

/// A line above, in the same block, that is a name and nothing else: the topmost one.
fn above<'t>(lines: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let block = lines.map(str::trim).take(LINES).take_while(|line| !line.is_empty());
    block.filter(|line| line.split_whitespace().all(is_name_word)).filter_map(as_name).last()
}

/// Two words at least, and no greeting.
fn as_name(text: &str) -> Option<&str> {
    let mut text = text.trim();
    // A particle stands between names, not before them.
    while let Some((first, rest)) = text.split_once(char::is_whitespace)
        && PARTICLES.contains(&first)
    {
        text = rest.trim_start();
    }
    let count = text.split_whitespace().filter(|word| !PARTICLES.contains(word)).count();
    ((2..=WORDS).contains(&count) && !text.split_whitespace().any(is_greeting)).then_some(text)
}

fn is_greeting(word: &str) -> bool {
    NO_NAMES.contains(&word.trim_end_matches('.').to_lowercase().as_str())
}

fn is_name_word(word: &str) -> bool {
    if PARTICLES.contains(&word) {
        return true;
    }
    // As in d'Arc.
    let word = word.strip_prefix("d'").or_else(|| word.strip_prefix("d’")).unwrap_or(word);
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.all(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '’' | '-' | '.'))
}
