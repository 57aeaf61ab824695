//! What turns texts into vectors: a model in the process, or a service. Here, so that neither the knowledge base nor a
//! model has to know the other.

use std::fmt::Debug;

use crate::Fault;

/// Turns texts into vectors of one length. It blocks: call it beside the async threads.
pub trait Embedder: Send + Sync + Debug {
    /// What made the vectors, with all that changes them: vectors of two names must not be mixed.
    fn name(&self) -> &str;

    /// The length of a vector; 0 as long as a service does not say.
    fn dimensions(&self) -> usize;

    /// As [`Embedder::dimensions`], and why a service does not say.
    fn length(&self) -> Result<usize, Fault> {
        Ok(self.dimensions())
    }

    /// One vector of length 1 for each text, in order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault>;

    /// The vector of a question. Somebody waits for the answer: a service that is slow or away fails soon.
    fn question(&self, text: &str) -> Result<Vec<f32>, Fault> {
        Ok(self.embed(&[text])?.pop().unwrap_or_default())
    }
}
