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
    assert_eq!(cached.embed(&["who", "where"]).unwrap(), [[3.0], [5.0]]);
    assert_eq!(cached.embed(&["where", "whence", "who"]).unwrap(), [[5.0], [6.0], [3.0]]);
    assert_eq!(cached.asked(), 3);
}

#[test]
fn an_ingest_passes_by() {
    let cached = Cached::new(Counting::default());
    let many: Vec<&str> = ["document"; 9].into();
    cached.embed(&many).unwrap();
    cached.embed(&many).unwrap();
    assert_eq!(cached.asked(), 18);
}

#[test]
fn what_is_asked_again_stays_and_memory_is_bounded() {
    let cached = Cached::new(Counting::default());
    for number in 0..GENERATION * 5 {
        cached.embed(&["again"]).unwrap();
        cached.embed(&[&format!("question {number}")]).unwrap();
    }
    assert_eq!(cached.asked(), 1 + GENERATION * 5);
    let seen = cached.seen();
    assert!(seen.young.len() <= GENERATION && seen.old.len() <= GENERATION);
}
