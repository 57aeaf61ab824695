//! Turns text into stemmed words. Indexing, queries and snippets use the same rules.

use std::ops::Range;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TokenStream as _,
};

use crate::record::Record;

/// Longer words are ignored.
const MAX_WORD_BYTES: usize = 40;
/// Further distinct words of a query are ignored.
const MAX_QUERY_TERMS: usize = 64;

/// The BM25 weights of the indexed fields: the whole record, its title, its tags. Measured on three test sets
/// (nDCG@10): a separate title with weight 1 reaches .664, .505 and .310; these weights reach .700, .531 and .392.
pub const FIELD_WEIGHTS: [f32; 3] = [1.0, 0.3, 0.3];

/// Above the first number of words, a text need not have all of the query; above the second, even less of it.
const FEW_WORDS: f32 = 4.0;
const MANY_WORDS: f32 = 7.0;
/// The power of the number of words by which the expected score decreases.
const MANY_WORDS_POWER: f32 = 0.75;
/// The weight of a word that no record has, relative to other rare words: a sign that the query is about another
/// subject. In a short query it may as well be a misspelling.
const UNKNOWN_WORD_WEIGHT: f32 = 1.5;
const WORDS_OF_SHORT_QUERY: f32 = 3.0;

/// Stop words: indexed, but ignored in queries.
const STOP_WORDS: &str = " a about all am an and any are as at be been being between but by can could did do does each for \
    from had has have he her his how i if in into is it its may might no not of on or other our she should some such \
    than that the their then there these they this to was we were what when where which who whom why will with would \
    you your ";

/// The BM25 score at which a record answers half of a query: a share of the score of a text of average length that has
/// each word of the query once, by the number of words. A query of one word is answered by any text with that word; of
/// many words, no text has most. `terms` are how often each distinct word is in the query, and in how many records.
pub fn keyword_scale(terms: impl ExactSizeIterator<Item = (f32, u64)>, records: u64) -> f32 {
    let words = terms.len() as f32;
    let share = (words / FEW_WORDS).min(1.0).min((MANY_WORDS / words.max(1.0)).powf(MANY_WORDS_POWER));
    let unknown = (words / WORDS_OF_SHORT_QUERY).clamp(1.0, UNKNOWN_WORD_WEIGHT);
    let weight = |frequency| if frequency == 0 { unknown } else { 1.0 };
    let inverse_frequency = |frequency: u64| {
        let without = records.saturating_sub(frequency) as f32;
        (1.0 + (without + 0.5) / (frequency as f32 + 0.5)).ln()
    };
    let term = |(times, frequency)| times * weight(frequency) * inverse_frequency(frequency);
    share * terms.map(term).sum::<f32>()
}

/// The texts of the indexed fields, in the order of [`FIELD_WEIGHTS`].
pub fn indexed_texts(record: &Record) -> [Vec<&str>; 3] {
    let tags: Vec<&str> = record.tags.iter().map(String::as_str).collect();
    let all = [record.title.as_str(), record.text.as_str()].into_iter().chain(tags.iter().copied());
    [all.collect(), vec![record.title.as_str()], tags]
}

/// Words of letters and digits in lower case, without accents, reduced to their English stems.
pub fn english_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Visits the stem and the byte range of each word.
pub fn for_each_token(text: &str, mut visit: impl FnMut(&str, Range<usize>)) {
    let mut analyzer = english_analyzer();
    let mut tokens = analyzer.token_stream(text);
    while let Some(token) = tokens.next() {
        visit(&token.text, token.offset_from..token.offset_to);
    }
}

/// The distinct terms of a query with their frequencies. Stop words are dropped, unless there are no other words.
pub fn query_terms(text: &str) -> Vec<(String, f32)> {
    let is_stop_word = |word: &str| STOP_WORDS.contains(&format!(" {} ", word.to_lowercase()));
    let terms = count_terms(text, |word| !is_stop_word(word));
    if terms.is_empty() { count_terms(text, |_| true) } else { terms }
}

fn count_terms(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, f32)> {
    let mut terms: Vec<(String, f32)> = Vec::new();
    for_each_token(text, |stem, range| match terms.iter().position(|(term, _)| term == stem) {
        _ if !text.get(range).is_some_and(&is_wanted) => {}
        Some(at) => terms[at].1 += 1.0,
        None if terms.len() < MAX_QUERY_TERMS => terms.push((stem.to_owned(), 1.0)),
        None => {}
    });
    terms
}
