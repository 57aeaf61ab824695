//! Whether an utterance of the model reads a preview back. A translation keeps the names, numbers and times of the
//! preview; in the same language most words are there.

use std::collections::HashSet;

/// One to twelve, as transcripts write them, in the built-in languages of the yes and no words.
const SMALL_NUMBERS: [[&str; 12]; 7] = [
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"],
    ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"],
    ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"],
    ["uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici", "dodici"],
    ["um", "dois", "três", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze"],
    ["een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien", "elf", "twaalf"],
];
/// Shorter words are articles and prepositions.
const MIN_WORD_CHARS: usize = 3;
/// The letters of ordinals, as in `20th`.
const MAX_ORDINAL_CHARS: usize = 3;

/// A number of a preview, with the other numbers that say the same.
#[derive(Debug, PartialEq, Eq)]
struct Number {
    values: Vec<String>,
}

/// Whether an utterance contains all numbers and times of a preview, half of its names, and half of its other words. A
/// translation has few of the words: two names or numbers are enough then.
pub(super) fn is_read_back(said: &str, preview: &str) -> bool {
    if said.trim().is_empty() {
        return false;
    }
    let (said_words, said_numbers) = (words(said), spoken_numbers(said));
    let digits: String = said.chars().filter(char::is_ascii_digit).collect();
    let is_said = |number: &Number| {
        // Long numbers are read in groups of digits.
        number
            .values
            .iter()
            .any(|value| said_numbers.contains(value) || value.len() > 3 && digits.contains(value))
    };
    let (numbers, names, all) = (numbers(preview), names(preview), words(preview));
    let is_half = |of: &HashSet<String>| of.intersection(&said_words).count() * 2 >= of.len();
    numbers.iter().all(is_said) && is_half(&names) && (numbers.len() + names.len() >= 2 || is_half(&all))
}

/// The words of a text in lower case, without numbers and identifiers.
fn words(text: &str) -> HashSet<String> {
    let words = split(text).map(|(_, word)| word).filter(|word| is_word(word));
    words.map(str::to_lowercase).collect()
}

/// The words with a capital letter that do not begin a sentence.
fn names(text: &str) -> HashSet<String> {
    let is_name = |(at, word): &(usize, &str)| {
        let before = text[..*at].trim_end_matches(|c: char| c.is_whitespace() || "\"'“”„«»(".contains(c));
        let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '{', '\n']);
        !begins && is_word(word) && word.starts_with(char::is_uppercase)
    };
    split(text).filter(is_name).map(|(_, word)| word.to_lowercase()).collect()
}

fn is_word(word: &str) -> bool {
    word.chars().count() >= MIN_WORD_CHARS && word.chars().all(char::is_alphabetic)
}

/// The words of a text with their positions.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    text.split(|c: char| !c.is_alphanumeric()).filter_map(move |word| {
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        debug_assert!(at >= rest, "words are in order");
        rest = at;
        (!word.is_empty()).then_some((at, word))
    })
}

/// The numbers of an utterance: digits, ordinals, and small numbers in words.
fn spoken_numbers(text: &str) -> HashSet<String> {
    let mut numbers = HashSet::new();
    for (_, word) in split(&without_separators(text)) {
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, letters) = word.split_at(digits);
        if !digits.is_empty() && letters.chars().count() <= MAX_ORDINAL_CHARS {
            numbers.insert(normal(digits));
        }
        let word = word.to_lowercase();
        for row in SMALL_NUMBERS {
            numbers.extend(row.iter().position(|known| *known == word).map(|at| (at + 1).to_string()));
        }
    }
    numbers
}

/// The numbers that a read-back must contain. Of a date that is the day, because month and year have other names; of a
/// time the hour of either clock, and its minutes.
fn numbers(preview: &str) -> Vec<Number> {
    let text = without_separators(preview);
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_identifier = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        rest = &rest[at..];
        if let Some((day, after)) = date(rest) {
            found.push(Number { values: vec![normal(day)] });
            rest = after.strip_prefix('T').unwrap_or(after);
        } else if let Some((hour, minute, after)) = time(rest) {
            found.push(Number { values: hours(hour) });
            if minute != "00" {
                found.push(Number { values: vec![normal(minute)] });
            }
            rest = after;
        } else {
            let (digits, after) = leading_digits(rest);
            let end = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
            // An identifier cannot be spoken.
            if !is_identifier && after[..end].chars().count() <= MAX_ORDINAL_CHARS {
                found.push(Number { values: vec![normal(digits)] });
            }
            rest = &after[end..];
        }
    }
    found
}

/// The day of a date in the form `2026-11-20`, and the rest of the text.
fn date(text: &str) -> Option<(&str, &str)> {
    let (year, rest) = leading_digits(text);
    let (month, rest) = leading_digits(rest.strip_prefix('-')?);
    let (day, rest) = leading_digits(rest.strip_prefix('-')?);
    (year.len() == 4 && month.len() == 2 && day.len() == 2).then_some((day, rest))
}

/// Hour and minute of a time in the form `15:00`, with optional seconds and zone, and the rest of the text.
fn time(text: &str) -> Option<(&str, &str, &str)> {
    let (hour, rest) = leading_digits(text);
    let (minute, mut rest) = leading_digits(rest.strip_prefix(':')?);
    for separator in [':', '.', '+', '-', ':'] {
        let (digits, after) = leading_digits(rest.strip_prefix(separator).unwrap_or_default());
        if !digits.is_empty() {
            rest = after;
        }
    }
    ((1..=2).contains(&hour.len()) && minute.len() == 2).then_some((
        hour,
        minute,
        rest.trim_start_matches('Z'),
    ))
}

/// An hour of the clock with 24 hours, and of that with 12.
fn hours(hour: &str) -> Vec<String> {
    let hour: u32 = hour.parse().unwrap_or_default();
    let other = match hour % 12 {
        0 => 12,
        other => other,
    };
    vec![hour.to_string(), other.to_string()]
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len())
}

/// Without zeros at the start.
fn normal(digits: &str) -> String {
    let normal = digits.trim_start_matches('0');
    if normal.is_empty() { "0".to_owned() } else { normal.to_owned() }
}

/// A text without the separators of thousands.
fn without_separators(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_separator = |at: usize| {
        matches!(chars.get(at), Some(',' | '.' | '\'' | '’' | '\u{a0}' | '\u{202f}'))
            && at > 0
            && is_digit(at - 1)
            && (1..=3).all(|next| is_digit(at + next))
            && !is_digit(at + 4)
    };
    (0..chars.len()).filter(|at| !is_separator(*at)).filter_map(|at| chars.get(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::is_read_back;

    #[test]
    fn a_read_back_has_the_words_names_and_numbers_of_the_preview() {
        let note = "Send the note \"see you on Friday\" to mira@studio.example";
        let room = "Book Studio B for Ines Halloran on 2026-11-20 from 15:00 to 16:30";
        let call = "Creates an event: {\"start\":\"2026-11-20T15:00:00+01:00\",\"title\":\"Call with Jon\"}";
        let cases = [
            (note, "I would send Mira a note that says: see you on Friday. Shall I?", true),
            (note, "One moment.", false),
            (note, "On Friday it will rain.", false),
            (note, "", false),
            ("Delete the calendar entry", "Shall I delete the entry of your calendar?", true),
            ("Delete the calendar entry", "Do you like the weather?", false),
            (room, "Studio B for Ines Halloran on November 20th from 3 to 4:30 pm, shall I book it?", true),
            (
                room,
                "Ich buche Studio B für Ines Halloran am 20. November von 15 Uhr bis 16 Uhr 30. Ja?",
                true,
            ),
            (room, "Studio B for Ines Halloran on November 21st from 3 to 4:30 pm, shall I book it?", false),
            (room, "Studio B for Ines Halloran on November 20th from 3 to 4 pm, shall I book it?", false),
            (room, "It is the 20th, 3:30 pm, and sixteen people are there.", false),
            (call, "An event on November the 20th at three: Call with Jon. Is that right?", true),
            ("Pay 5,000 euros to Jon", "I pay 5000 euros to Jon, yes or no?", true),
            ("Pay 5,000 euros to Jon", "I pay 50 euros to Jon, yes or no?", false),
            ("Call 5551234567", "Shall I call 555 123 4567?", true),
            ("Invite 2 guests", "Invite two guests, yes or no?", true),
            ("Invite 2 guests", "Invite three guests, yes or no?", false),
            ("Remove the file doc_8f3a21 of Mira", "Shall I remove that file of Mira?", true),
            ("", "Anything.", true),
        ];
        for (preview, said, expected) in cases {
            assert_eq!(is_read_back(said, preview), expected, "{preview} / {said}");
        }
    }
}
