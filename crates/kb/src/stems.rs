//! How a text becomes words: the same for what is indexed, asked and shown around a match.

use std::ops::Range;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TokenStream as _,
};

use crate::record::Record;

/// A "word" that is longer is none.
const MOST_WORD: usize = 40;
/// More different words than this are a text, not a query.
const MOST_WORDS: usize = 64;

/// What a match counts in all of the record, and once more in its title and in its tags. Measured on three test sets
/// (nDCG@10): a title apart from the text with the weight 1 gives .664, .505 and .310, this .700, .531 and .392.
pub const WEIGHTS: [f32; 3] = [1.0, 0.3, 0.3];

/// Words of questions that say nothing about the answer. They are indexed, but not looked for.
const ASIDE: &str = " a about all am an and any are as at be been being between but by can could did do does each for \
    from had has have he her his how i if in into is it its may might no not of on or other our she should some such \
    than that the their then there these they this to was we were what when where which who whom why will with would \
    you your ";

/// What is searched of a record, in the order of [`WEIGHTS`]: all of it, its title, its tags.
pub fn fields(record: &Record) -> [Vec<&str>; 3] {
    let tags: Vec<&str> = record.tags.iter().map(String::as_str).collect();
    let all = [record.title.as_str(), record.text.as_str()].into_iter().chain(tags.iter().copied());
    [all.collect(), vec![record.title.as_str()], tags]
}

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

/// The different words of a query, without those that say nothing unless there are no others. A word that is written
/// twice counts twice.
pub fn wanted(text: &str) -> Vec<(String, f32)> {
    let is_aside = |word: &str| ASIDE.contains(&format!(" {} ", word.to_lowercase()));
    let telling = words(text, |word| !is_aside(word));
    if telling.is_empty() { words(text, |_| true) } else { telling }
}

fn words(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, f32)> {
    let mut words: Vec<(String, f32)> = Vec::new();
    each(text, |stem, range| match words.iter().position(|(word, _)| word == stem) {
        _ if !text.get(range).is_some_and(&is_wanted) => {}
        Some(at) => words[at].1 += 1.0,
        None if words.len() < MOST_WORDS => words.push((stem.to_owned(), 1.0)),
        None => {}
    });
    words
}
