#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Counts what it is asked; a text's vector is its length.
#[derive(Debug, Default)]
struct Counting {
    texts: AtomicUsize,
}

impl Embedder for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
    }
}

impl Cached<Counting> {
    fn asked(&self) -> usize {
        self.inner.texts.load(Ordering::SeqCst)
    }
}

#[test]
fn a_question_is_embedded_once() {
    let cached = Cached::new(Counting::default());
    let asked: Vec<_> =
        ["who", "where", "who", "where"].iter().map(|text| cached.question(text).unwrap()).collect();
    assert_eq!(asked, [[3.0], [5.0], [3.0], [5.0]]);
    assert_eq!(cached.asked(), 2);
}

#[test]
fn an_ingest_passes_by() {
    let cached = Cached::new(Counting::default());
    cached.embed(&["document", "document"]).unwrap();
    cached.embed(&["document"]).unwrap();
    assert_eq!(cached.asked(), 3);
}

#[test]
fn what_is_asked_again_stays_and_memory_is_bounded() {
    let cached = Cached::new(Counting::default());
    for number in 0..GENERATION * 5 {
        cached.question("again").unwrap();
        cached.question(&format!("question {number}")).unwrap();
    }
    assert_eq!(cached.asked(), 1 + GENERATION * 5);
    let seen = cached.seen();
    assert!(seen.young.len() <= GENERATION && seen.old.len() <= GENERATION);
}
