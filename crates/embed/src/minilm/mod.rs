//! all-MiniLM-L6-v2 in this process: a BERT encoder of six layers. docs/decisions/0006-embedder.md compares it with the
//! general runtimes that could run it.

mod forward;
mod math;
mod simd;
mod tokenizer;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayon::prelude::*;
use toolwright_capabilities::{CapabilityError, Embedder};

use tokenizer::Tokenizer;
use weights::{HIDDEN_SIZE, Weights};

use crate::install;

/// The maximum number of tokens in a batch: enough to reuse weights in the cache, few enough for the activations to
/// stay there too.
const MAX_BATCH_TOKENS: usize = 256;

/// The model as an embedder, loaded once on first use.
#[derive(Debug)]
pub(crate) struct LocalModel {
    dir: PathBuf,
    model: OnceLock<Result<Model, String>>,
}

impl LocalModel {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, model: OnceLock::new() }
    }
}

impl Embedder for LocalModel {
    fn name(&self) -> &str {
        install::MODEL_NAME
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        Ok(HIDDEN_SIZE)
    }

    /// Between texts of different subjects, cosines scatter around 0.
    fn unrelated_cosine(&self) -> Option<f32> {
        Some(0.0)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        match self.model.get_or_init(|| Model::open(&self.dir)) {
            Ok(model) => Ok(model.embed(texts)),
            Err(error) => {
                let message = format!("cannot load the model: {error}; run `{}`", install::INSTALL_COMMAND);
                Err(CapabilityError::not_configured(message))
            }
        }
    }
}

/// The loaded model.
#[derive(Debug)]
struct Model {
    tokenizer: Tokenizer,
    weights: Weights,
}

impl Model {
    /// Opens the model's files in a directory.
    fn open(dir: &Path) -> Result<Self, String> {
        let tokenizer = Tokenizer::open(&dir.join("tokenizer.json"))?;
        Ok(Self { tokenizer, weights: Weights::open(&dir.join("model.safetensors"))? })
    }

    /// One vector per text. Several texts use all cores.
    fn embed(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let ids: Vec<Vec<u32>> = texts.par_iter().map(|text| self.tokenizer.encode(text)).collect();
        batches(&ids).into_par_iter().flat_map_iter(|batch| forward::embed(&self.weights, &batch)).collect()
    }
}

/// Groups texts into batches, in order. A longer text is a batch of its own.
fn batches(ids: &[Vec<u32>]) -> Vec<Vec<&[u32]>> {
    let mut batches: Vec<Vec<&[u32]>> = Vec::new();
    let mut size = usize::MAX;
    for ids in ids {
        size = size.saturating_add(ids.len());
        match batches.last_mut() {
            Some(batch) if size <= MAX_BATCH_TOKENS => batch.push(ids),
            _ => {
                size = ids.len();
                batches.push(vec![ids]);
            }
        }
    }
    batches
}

#[cfg(test)]
#[path = "minilm_tests.rs"]
mod tests;
