//! Vectors of what was asked lately: people and models repeat their questions.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};

use toolwright_capabilities::{Embedder, Fault};

/// Vectors kept in each of the two generations.
const GENERATION: usize = 1024;
/// A call with more texts is an ingest, which would drive the questions out.
const FEW: usize = 8;
/// A longer text is no question.
const SHORT: usize = 2048;

/// An embedder that remembers.
#[derive(Debug)]
pub(crate) struct Cached<E> {
    inner: E,
    seen: Mutex<Seen>,
}

/// When the young are many enough, they become the old, and the old are forgotten unless they are asked for again.
#[derive(Debug, Default)]
struct Seen {
    young: HashMap<String, Vec<f32>>,
    old: HashMap<String, Vec<f32>>,
}

impl<E: Embedder> Cached<E> {
    pub(crate) fn new(inner: E) -> Self {
        Self { inner, seen: Mutex::default() }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        // A map is whole after any panic: inserting is the last step.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Embedder> Embedder for Cached<E> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        if texts.len() > FEW || texts.iter().any(|text| text.len() > SHORT) {
            return self.inner.embed(texts);
        }
        let mut known: Vec<Option<Vec<f32>>> = texts.iter().map(|text| self.seen().find(text)).collect();
        let missing: Vec<&str> =
            texts.iter().zip(&known).filter(|(_, vector)| vector.is_none()).map(|(text, _)| *text).collect();
        if !missing.is_empty() {
            let vectors = self.inner.embed(&missing)?;
            for (text, vector) in missing.iter().zip(&vectors) {
                self.seen().keep(text, vector.clone());
            }
            let places = known.iter_mut().filter(|vector| vector.is_none());
            places.zip(vectors).for_each(|(place, vector)| *place = Some(vector));
        }
        Ok(known.into_iter().flatten().collect())
    }
}

impl Seen {
    fn find(&mut self, text: &str) -> Option<Vec<f32>> {
        if let Some(vector) = self.young.get(text) {
            return Some(vector.clone());
        }
        let vector = self.old.remove(text)?;
        self.keep(text, vector.clone());
        Some(vector)
    }

    fn keep(&mut self, text: &str, vector: Vec<f32>) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(text.to_owned(), vector);
    }
}

#[cfg(test)]
#[path = "cached_tests.rs"]
mod tests;
