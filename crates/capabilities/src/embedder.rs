//! Turns texts into vectors: a local model or an HTTP service. The trait lives here so that the knowledge base and the
//! embedders do not depend on each other.

use std::fmt::Debug;

use crate::CapabilityError;

/// Turns texts into vectors of one length. All methods block: do not call them on async threads.
pub trait Embedder: Send + Sync + Debug {
    /// Identifies everything that determines the vectors. Vectors of embedders with different names must not be mixed.
    fn name(&self) -> &str;

    /// The length of the vectors. An HTTP service may have to be asked.
    fn dimensions(&self) -> Result<usize, CapabilityError>;

    /// The mean cosine of unrelated texts, if it is known. Otherwise it is measured with a few texts.
    fn unrelated_cosine(&self) -> Option<f32> {
        None
    }

    /// One normalized vector per text, in order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError>;

    /// The vector of a search query. A caller waits for it: a service that is slow or unavailable fails fast.
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, CapabilityError> {
        Ok(self.embed(&[text])?.pop().unwrap_or_default())
    }
}
