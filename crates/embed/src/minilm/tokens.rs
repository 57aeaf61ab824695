//! Text to token ids, as the model was trained: BERT's clean-up, lower case without accents, words and punctuation, then
//! the longest pieces that the vocabulary has. Equal to the `tokenizers` library, which a test's samples were made with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// Tokens of a text that are looked at, with the one at its start and the one at its end.
pub(super) const MOST_TOKENS: usize = 256;
/// Pieces that the vocabulary has; only room is made for them.
const VOCABULARY: usize = 30_522;
/// A longer word is unknown.
const MOST_CHARACTERS: usize = 100;

/// Pieces and their ids.
type Pieces = HashMap<Box<str>, u32, foldhash::fast::FixedState>;

/// The vocabulary.
#[derive(Debug)]
pub(super) struct Tokens {
    vocabulary: Vocabulary,
    /// Tokens that have no text of their own; written out in a text, they are themselves.
    special: Vec<(String, u32)>,
    unknown: u32,
    start: u32,
    end: u32,
}

#[derive(Debug)]
struct Vocabulary {
    /// Pieces that begin a word.
    first: Pieces,
    /// Pieces that go on with a word.
    later: Pieces,
}

#[derive(Deserialize)]
struct File {
    added_tokens: Vec<Added>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct Model {
    vocab: Vocabulary,
}

/// Read straight into its two maps: it is most of what opening the model costs.
impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocabulary;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("pieces and their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vocabulary, A::Error> {
                let sized = |capacity| Pieces::with_capacity_and_hasher(capacity, Default::default());
                let mut vocabulary = Vocabulary { first: sized(VOCABULARY), later: sized(VOCABULARY / 4) };
                while let Some((piece, id)) = entries.next_entry::<Cow<'de, str>, u32>()? {
                    match piece.strip_prefix("##") {
                        Some(rest) if !rest.is_empty() => vocabulary.later.insert(rest.into(), id),
                        _ => vocabulary.first.insert(piece.into(), id),
                    };
                }
                Ok(vocabulary)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Tokens {
    /// Reads `tokenizer.json`.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
        let file: File = serde_json::from_str(&text).map_err(|error| told(&error))?;
        Self::new(file).ok_or_else(|| told(&"it lacks [UNK], [CLS] or [SEP]"))
    }

    fn new(file: File) -> Option<Self> {
        let vocabulary = file.model.vocab;
        let id = |name: &str| vocabulary.first.get(name).copied();
        let (unknown, start, end) = (id("[UNK]")?, id("[CLS]")?, id("[SEP]")?);
        let special = file.added_tokens.into_iter().map(|token| (token.content, token.id)).collect();
        Some(Self { vocabulary, special, unknown, start, end })
    }

    /// The ids of a text: at most [`MOST_TOKENS`], and never fewer than two.
    pub(super) fn of(&self, text: &str) -> Vec<u32> {
        let mut ids = vec![self.start];
        let mut rest = text;
        while let Some((at, length, id)) = self.next_special(rest) {
            self.plain(&rest[..at], &mut ids);
            ids.push(id);
            rest = &rest[at + length..];
        }
        self.plain(rest, &mut ids);
        ids.truncate(MOST_TOKENS - 1);
        ids.push(self.end);
        ids
    }

    fn next_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        // All of them are in brackets; most texts have none.
        let open = text.find('[')?;
        let found = self
            .special
            .iter()
            .filter_map(|(name, id)| text[open..].find(name.as_str()).map(|at| (open + at, name.len(), *id)));
        found.min()
    }

    /// Adds the tokens of a text without special ones, until there are enough.
    fn plain(&self, text: &str, ids: &mut Vec<u32>) {
        let cleaned = text.chars().filter(|c| is_kept(*c)).flat_map(apart).nfd();
        let lower = cleaned.filter(|c| !c.is_mark_nonspacing()).flat_map(char::to_lowercase);
        let mut word = String::new();
        for c in lower {
            if ids.len() >= MOST_TOKENS {
                return;
            }
            if c.is_whitespace() {
                self.word(&mut word, ids);
            } else if c.is_ascii_punctuation() || c.is_punctuation() {
                self.word(&mut word, ids);
                word.push(c);
                self.word(&mut word, ids);
            } else {
                word.push(c);
            }
        }
        self.word(&mut word, ids);
    }

    /// Takes the word, piece by piece; a word with a part that is in no piece is unknown as a whole.
    fn word(&self, word: &mut String, ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let before = ids.len();
        let mut rest = word.as_str();
        if word.chars().nth(MOST_CHARACTERS).is_some() {
            ids.push(self.unknown);
            rest = "";
        }
        let mut pieces = &self.vocabulary.first;
        while !rest.is_empty() {
            let ends = rest.char_indices().rev().map(|(at, c)| at + c.len_utf8());
            let Some((end, id)) = ends.filter_map(|end| Some((end, *pieces.get(&rest[..end])?))).next()
            else {
                ids.truncate(before);
                ids.push(self.unknown);
                break;
            };
            ids.push(id);
            rest = &rest[end..];
            pieces = &self.vocabulary.later;
        }
        word.clear();
    }
}

fn is_kept(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || !(c == '\0' || c == '\u{fffd}' || c.is_other())
}

/// Sets ideographs apart: each is a word.
fn apart(c: char) -> impl Iterator<Item = char> {
    let around = is_ideograph(c).then_some(' ');
    let c = if c.is_whitespace() { ' ' } else { c };
    around.into_iter().chain([c]).chain(around)
}

fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
