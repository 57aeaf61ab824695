//! all-MiniLM-L6-v2 as an [`Embedder`], loaded once on first use.

use std::path::PathBuf;
use std::sync::OnceLock;

use toolwright_capabilities::{CapabilityError, Embedder};

use crate::install;
use crate::minilm::{HIDDEN_SIZE, Model};

/// The model in this process.
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

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        match self.model.get_or_init(|| Model::open(&self.dir)) {
            Ok(model) => Ok(model.embed(texts)),
            Err(error) => {
                let message = format!("cannot load the model: {error}; run `{}`", install::INSTALL_COMMAND);
                Err(CapabilityError::new("NOT_CONFIGURED", message))
            }
        }
    }
}
