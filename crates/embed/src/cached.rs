//! Vectors of what was asked lately: people and models repeat their questions.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};

use toolwright_capabilities::{Embedder, Fault};

/// Vectors kept in each of the two generations.
const GENERATION: usize = 1024;
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

    fn length(&self) -> Result<usize, Fault> {
        self.inner.length()
    }

    /// An ingest is not remembered: it would drive the questions out.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        self.inner.embed(texts)
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, Fault> {
        if text.len() > SHORT {
            return self.inner.question(text);
        }
        if let Some(vector) = self.seen().find(text) {
            return Ok(vector);
        }
        let vector = self.inner.question(text)?;
        self.seen().keep(text, vector.clone());
        Ok(vector)
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
