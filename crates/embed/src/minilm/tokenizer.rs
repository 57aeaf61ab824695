//! The tokenizer that the model was trained with: BERT's normalization (lower case, no accents), split into words and
//! punctuation, then WordPiece. A test compares it with the `tokenizers` library.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// The maximum number of tokens, with the start and end token. The rest of a text is cut off.
const MAX_TOKENS: usize = 256;
/// Longer words become the unknown token.
const MAX_WORD_CHARS: usize = 100;
/// Marks a piece that continues a word.
const CONTINUATION_PREFIX: &str = "##";

/// The vocabulary and its special tokens.
#[derive(Debug)]
pub(super) struct Tokenizer {
    /// Pieces that begin a word.
    initial: HashMap<String, u32>,
    /// Pieces that continue a word, without their prefix.
    continuation: HashMap<String, u32>,
    /// Tokens such as `[SEP]`, which are recognized in a text before it is split.
    special: Vec<AddedToken>,
    unknown: u32,
    start: u32,
    end: u32,
}

#[derive(Deserialize)]
struct TokenizerFile {
    added_tokens: Vec<AddedToken>,
    model: WordPieceModel,
}

#[derive(Debug, Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct WordPieceModel {
    vocab: HashMap<String, u32>,
}

impl Tokenizer {
    /// Reads `tokenizer.json`.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let cannot_read = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| cannot_read(&error))?;
        let file: TokenizerFile = serde_json::from_str(&text).map_err(|error| cannot_read(&error))?;
        Self::new(file).ok_or_else(|| cannot_read(&"[UNK], [CLS] or [SEP] is missing"))
    }

    fn new(file: TokenizerFile) -> Option<Self> {
        let mut initial = file.model.vocab;
        let is_continuation = |piece: &str| piece.len() > 2 && piece.starts_with(CONTINUATION_PREFIX);
        let continuation = initial.extract_if(|piece, _| is_continuation(piece));
        let continuation =
            continuation.map(|(piece, id)| (piece[CONTINUATION_PREFIX.len()..].to_owned(), id));
        let continuation = continuation.collect();
        let id = |name: &str| initial.get(name).copied();
        let (unknown, start, end) = (id("[UNK]")?, id("[CLS]")?, id("[SEP]")?);
        Some(Self { initial, continuation, special: file.added_tokens, unknown, start, end })
    }

    /// The token ids of a text: from two to [`MAX_TOKENS`].
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = vec![self.start];
        let mut rest = text;
        while let Some((at, token)) = self.next_special(rest) {
            self.encode_plain(&rest[..at], &mut ids);
            ids.push(token.id);
            rest = &rest[at + token.content.len()..];
        }
        self.encode_plain(rest, &mut ids);
        ids.truncate(MAX_TOKENS - 1);
        ids.push(self.end);
        ids
    }

    fn next_special(&self, text: &str) -> Option<(usize, &AddedToken)> {
        let found = self.special.iter().filter_map(|token| Some((text.find(token.content.as_str())?, token)));
        found.min_by_key(|(at, token)| (*at, token.content.len()))
    }

    /// Appends the tokens of a text without special tokens, until there are enough.
    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) {
        let cleaned = text.chars().filter(|c| !is_removed(*c)).flat_map(separate_ideograph).nfd();
        let lower = cleaned.filter(|c| !c.is_mark_nonspacing()).flat_map(char::to_lowercase);
        let mut word = String::new();
        for c in lower {
            if ids.len() >= MAX_TOKENS {
                return;
            }
            if c.is_whitespace() {
                self.encode_word(&mut word, ids);
            } else if c.is_ascii_punctuation() || c.is_punctuation() {
                self.encode_word(&mut word, ids);
                word.push(c);
                self.encode_word(&mut word, ids);
            } else {
                word.push(c);
            }
        }
        self.encode_word(&mut word, ids);
    }

    /// WordPiece: takes the longest known piece from the front of the word until it is empty, or the unknown token for
    /// the whole word if a part matches no piece.
    fn encode_word(&self, word: &mut String, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word.as_str();
        if word.chars().nth(MAX_WORD_CHARS).is_some() {
            ids.push(self.unknown);
            rest = "";
        }
        let mut pieces = &self.initial;
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
            pieces = &self.continuation;
        }
        word.clear();
    }
}

/// Control characters other than white space.
fn is_removed(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && (c == '\0' || c == '\u{fffd}' || c.is_other())
}

/// Puts spaces around ideographs, because each is a word.
fn separate_ideograph(c: char) -> impl Iterator<Item = char> {
    let space = is_ideograph(c).then_some(' ');
    let c = if c.is_whitespace() { ' ' } else { c };
    space.into_iter().chain([c]).chain(space)
}

fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
