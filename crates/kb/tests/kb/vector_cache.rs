//! The model that `scripts/test` installs, with its vectors in a file below `target/`: embedding the test sets takes
//! minutes. Test processes share the file, so that each text is embedded once.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use toolwright_capabilities::{CapabilityError, Embedder};

/// The first bytes of a SHA-256.
type Key = [u8; 16];

const KEY_BYTES: usize = size_of::<Key>();

#[derive(Debug)]
pub struct VectorCache {
    model: Arc<dyn Embedder>,
    file: Mutex<CacheFile>,
}

/// Rows of a key and a vector. They are appended under a lock; a process that was killed may leave a part of one.
#[derive(Debug)]
struct CacheFile {
    file: File,
    row_bytes: usize,
    /// How much of the file was read.
    read: u64,
    vectors: HashMap<Key, Vec<f32>>,
}

impl VectorCache {
    pub fn open() -> Self {
        let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models");
        let models = std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| default.into(), PathBuf::from);
        let weights = fs::read(toolwright_embed::install::model_dir(&models).join("model.safetensors"));
        let model = toolwright_embed::open(&toolwright_embed::Settings { models, endpoint: None })
            .unwrap_or_else(|error| panic!("{error}: run scripts/model, which installs it below target/"));
        // Another model has another file.
        let name = format!("vectors-{:032x}", u128::from_be_bytes(key(&weights.unwrap())));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let file = File::options().read(true).append(true).create(true).open(path).unwrap();
        let row_bytes = KEY_BYTES + size_of::<f32>() * model.dimensions().unwrap();
        Self { model, file: Mutex::new(CacheFile { file, row_bytes, read: 0, vectors: HashMap::new() }) }
    }

    /// Asserts that the stored vector of a text is the model's: that the forward pass has not changed since.
    pub fn check(&self, text: &str) {
        let (stored, fresh) =
            (self.embed(&[text]).unwrap().remove(0), self.model.embed(&[text]).unwrap().remove(0));
        let is_near = stored.iter().zip(&fresh).all(|(stored, fresh)| (stored - fresh).abs() < 1e-4);
        assert!(is_near, "the stored vectors are outdated: delete {}/vectors-*", env!("CARGO_TARGET_TMPDIR"));
    }
}

impl CacheFile {
    /// Reads the rows that this or other processes have appended.
    fn read_rows(&mut self) {
        let length = self.file.metadata().unwrap().len();
        let whole = length - length % self.row_bytes as u64;
        if length != whole {
            self.file.set_len(whole).unwrap();
        }
        self.file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).unwrap();
        self.read = whole;
        self.vectors.extend(bytes.chunks_exact(self.row_bytes).map(|row| {
            let (key, numbers) = row.split_first_chunk::<KEY_BYTES>().unwrap();
            (*key, numbers.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect())
        }));
    }

    fn append(&mut self, keys: &[Key], vectors: &[Vec<f32>]) {
        let row = |(key, vector): (&Key, &Vec<f32>)| -> Vec<u8> {
            let numbers = vector.iter().flat_map(|number| number.to_le_bytes());
            key.iter().copied().chain(numbers).collect()
        };
        let bytes: Vec<u8> = keys.iter().zip(vectors).flat_map(row).collect();
        self.file.write_all(&bytes).unwrap();
    }

    fn missing<'t>(&self, texts: &[&'t str]) -> Vec<&'t str> {
        texts.iter().copied().filter(|text| !self.vectors.contains_key(&key(text.as_bytes()))).collect()
    }
}

impl Embedder for VectorCache {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        self.model.dimensions()
    }

    fn unrelated_cosine(&self) -> Option<f32> {
        self.model.unrelated_cosine()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let mut cache = self.file.lock().unwrap();
        if !cache.missing(texts).is_empty() {
            // The model uses all cores: another process waits, and reads what was embedded meanwhile.
            cache.file.lock().unwrap();
            cache.read_rows();
            let missing = cache.missing(texts);
            if !missing.is_empty() {
                let keys: Vec<Key> = missing.iter().map(|text| key(text.as_bytes())).collect();
                let vectors = self.model.embed(&missing)?;
                cache.append(&keys, &vectors);
                cache.read_rows();
            }
            cache.file.unlock().unwrap();
        }
        Ok(texts.iter().map(|text| cache.vectors[&key(text.as_bytes())].clone()).collect())
    }
}

fn key(bytes: &[u8]) -> Key {
    *Sha256::digest(bytes).first_chunk().unwrap()
}
