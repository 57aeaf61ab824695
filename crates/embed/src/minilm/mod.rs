//! all-MiniLM-L6-v2 in this process: a BERT of six layers, written out. The runtimes that could run it were measured
//! (docs/decisions/0006-embedder.md).

mod forward;
mod kernel;
mod lanes;
mod tokens;
mod weights;

use std::path::Path;

use rayon::prelude::*;

use tokens::Tokens;
use weights::Weights;

pub(crate) use weights::WIDTH;

/// Tokens that go through the layers together: enough to make use of weights once they are in the cache, and few enough
/// for their own numbers to stay there.
const BATCH: usize = 256;

/// The model, ready.
#[derive(Debug)]
pub(crate) struct Model {
    tokens: Tokens,
    weights: Weights,
}

impl Model {
    /// Opens the files in a directory.
    pub(crate) fn open(dir: &Path) -> Result<Self, String> {
        let tokens = Tokens::open(&dir.join("tokenizer.json"))?;
        Ok(Self { tokens, weights: Weights::open(&dir.join("model.safetensors"))? })
    }

    /// One vector a text. Several texts use all cores.
    pub(crate) fn embed(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        if let [text] = texts {
            return forward::embed(&self.weights, &[&self.tokens.of(text)]);
        }
        let ids: Vec<Vec<u32>> = texts.par_iter().map(|text| self.tokens.of(text)).collect();
        batches(&ids).into_par_iter().flat_map_iter(|batch| forward::embed(&self.weights, &batch)).collect()
    }
}

/// Texts that go through the layers together, in their order.
fn batches(ids: &[Vec<u32>]) -> Vec<Vec<&[u32]>> {
    let mut batches: Vec<Vec<&[u32]>> = Vec::new();
    let mut size = usize::MAX;
    for ids in ids {
        size = size.saturating_add(ids.len());
        match batches.last_mut() {
            Some(batch) if size <= BATCH => batch.push(ids),
            _ => {
                size = ids.len();
                batches.push(vec![ids]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests;
