//! How a text becomes words: the same for what is indexed, asked and shown around a match.

use std::ops::Range;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TokenStream as _,
};

/// A "word" that is longer is none.
const MOST_WORD: usize = 40;
/// More different words than this are a text, not a query.
const MOST_WORDS: usize = 64;

/// What a match counts in the text, in the title and in the tags.
pub const WEIGHTS: [f32; 3] = [1.0, 1.0, 1.0];

/// Words of letters and digits in lower case, without accents, reduced to their English stems.
pub fn english() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MOST_WORD))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Each word's stem, and where the word is.
pub fn each(text: &str, mut visit: impl FnMut(&str, Range<usize>)) {
    let mut analyzer = english();
    let mut tokens = analyzer.token_stream(text);
    while let Some(token) = tokens.next() {
        visit(&token.text, token.offset_from..token.offset_to);
    }
}

/// The different words of a query. A word that is written twice counts twice.
pub fn wanted(text: &str) -> Vec<(String, f32)> {
    let mut words: Vec<(String, f32)> = Vec::new();
    each(text, |stem, _| match words.iter().position(|(word, _)| word == stem) {
        Some(at) => words[at].1 += 1.0,
        None if words.len() < MOST_WORDS => words.push((stem.to_owned(), 1.0)),
        None => {}
    });
    words
}
