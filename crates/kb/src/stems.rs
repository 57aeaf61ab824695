//! How a text becomes words: the same for what is indexed, asked and shown around a match.

use std::ops::Range;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TokenStream as _,
};

/// A "word" that is longer is none.
const MOST_WORD: usize = 40;

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
