//! all-MiniLM-L6-v2 as an embedder: loaded on first use, once.

use std::path::PathBuf;
use std::sync::OnceLock;

use toolwright_capabilities::{Embedder, Fault};

use crate::install;
use crate::minilm::{Model, WIDTH};

/// The model in this process.
#[derive(Debug)]
pub(crate) struct Local {
    dir: PathBuf,
    model: OnceLock<Result<Model, String>>,
}

impl Local {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, model: OnceLock::new() }
    }
}

impl Embedder for Local {
    fn name(&self) -> &str {
        install::NAME
    }

    fn dimensions(&self) -> usize {
        WIDTH
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        match self.model.get_or_init(|| Model::open(&self.dir)) {
            Ok(model) => Ok(model.embed(texts)),
            Err(error) => {
                let message = format!("the model cannot be used: {error}; run `{}`", install::COMMAND);
                Err(Fault::new("NOT_CONFIGURED", message))
            }
        }
    }
}
