//! From text to words: the same for all back ends, so that they rank alike.

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TokenStream as _,
};

/// What a match counts in the text, in the title and in the tags.
pub const WEIGHTS: [f32; 3] = [1.0, 1.0, 1.0];
/// A "word" that is longer is none.
const MOST_WORD: usize = 40;
/// More different words than this are a text, not a query.
const MOST_WORDS: usize = 64;

/// Words of letters and digits in lower case, without accents, reduced to their stems.
pub fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MOST_WORD))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The different words of a query, and how often each is there: one that is written twice counts twice.
pub fn query(text: &str) -> Vec<(String, f32)> {
    let mut words: Vec<(String, f32)> = Vec::new();
    let mut analyzer = analyzer();
    let mut tokens = analyzer.token_stream(text);
    while let Some(token) = tokens.next() {
        match words.iter().position(|(word, _)| *word == token.text) {
            Some(at) => words[at].1 += 1.0,
            None if words.len() < MOST_WORDS => words.push((token.text.clone(), 1.0)),
            None => {}
        }
    }
    words
}
