//! `model.safetensors`, memory-mapped: pages are read on demand and shared between processes. An installation replaces
//! the file atomically and never writes to it again, which makes the mapping safe.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use serde::Deserialize;

use super::math::TILE_OUTPUTS;

pub(super) const HIDDEN_SIZE: usize = 384;
pub(super) const INTERMEDIATE_SIZE: usize = 1536;
pub(super) const LAYER_COUNT: usize = 6;
pub(super) const VOCABULARY_SIZE: usize = 30_522;
const MAX_POSITIONS: usize = 512;

const _: () =
    assert!(HIDDEN_SIZE.is_multiple_of(TILE_OUTPUTS) && INTERMEDIATE_SIZE.is_multiple_of(TILE_OUTPUTS));

/// The tensors of the model, as ranges of the mapped file.
#[derive(Debug)]
pub(super) struct Weights {
    map: Mmap,
    pub words: Tensor,
    pub positions: Tensor,
    pub token_types: Tensor,
    pub norm: Norm,
    pub layers: Vec<Layer>,
}

/// The byte range of a tensor.
#[derive(Debug, Clone)]
pub(super) struct Tensor(Range<usize>);

#[derive(Debug)]
pub(super) struct Norm {
    pub scale: Tensor,
    pub shift: Tensor,
}

#[derive(Debug)]
pub(super) struct Linear {
    pub weights: Tensor,
    pub bias: Tensor,
}

#[derive(Debug)]
pub(super) struct Layer {
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub attention_output: Linear,
    pub attention_norm: Norm,
    pub intermediate: Linear,
    pub output: Linear,
    pub output_norm: Norm,
}

#[derive(Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl Weights {
    /// Maps the file and locates every tensor.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let cannot_read = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let file = File::open(path).map_err(cannot_read)?;
        // SAFETY: installed files are replaced, never written to, so the mapping cannot change.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(cannot_read)?;
        Self::read(map).map_err(|error| format!("{} is not all-MiniLM-L6-v2: {error}", path.display()))
    }

    fn read(map: Mmap) -> Result<Self, String> {
        let index = TensorIndex::read(&map)?;
        Ok(Self {
            words: index.tensor("embeddings.word_embeddings.weight", &[VOCABULARY_SIZE, HIDDEN_SIZE])?,
            positions: index
                .tensor("embeddings.position_embeddings.weight", &[MAX_POSITIONS, HIDDEN_SIZE])?,
            token_types: index.tensor("embeddings.token_type_embeddings.weight", &[2, HIDDEN_SIZE])?,
            norm: index.norm("embeddings.LayerNorm")?,
            layers: (0..LAYER_COUNT).map(|layer| index.layer(layer)).collect::<Result<_, _>>()?,
            map,
        })
    }

    /// The values of a tensor, whose range was checked when the file was opened.
    #[inline(always)]
    pub(super) fn values(&self, tensor: &Tensor) -> &[f32] {
        bytemuck::cast_slice(&self.map[tensor.0.clone()])
    }
}

/// The header of the file: the position of each tensor.
struct TensorIndex {
    entries: HashMap<String, serde_json::Value>,
    start: usize,
    length: usize,
}

impl TensorIndex {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        if cfg!(target_endian = "big") {
            return Err("the model needs a little-endian machine".to_owned());
        }
        let (size, rest) = bytes.split_first_chunk::<8>().ok_or("the file is too short")?;
        let size = usize::try_from(u64::from_le_bytes(*size)).map_err(|_| "the header is too long")?;
        let header = rest.get(..size).ok_or("the header is cut off")?;
        let entries =
            serde_json::from_slice(header).map_err(|error| format!("the header is invalid: {error}"))?;
        Ok(Self { entries, start: 8 + size, length: bytes.len() })
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, String> {
        let entry = self.entries.get(name).ok_or_else(|| format!("tensor `{name}` is missing"))?;
        let entry = TensorEntry::deserialize(entry).map_err(|error| format!("tensor `{name}`: {error}"))?;
        let (from, to) = entry.data_offsets;
        let (Some(from), Some(to)) = (self.start.checked_add(from), self.start.checked_add(to)) else {
            return Err(format!("tensor `{name}` is outside of the file"));
        };
        let size = 4 * shape.iter().product::<usize>();
        if entry.dtype != "F32" || entry.shape != shape || to.checked_sub(from) != Some(size) {
            return Err(format!("tensor `{name}` is not F32 of shape {shape:?}"));
        }
        if to > self.length || !from.is_multiple_of(4) {
            return Err(format!("tensor `{name}` is cut off or not aligned"));
        }
        Ok(Tensor(from..to))
    }

    fn norm(&self, name: &str) -> Result<Norm, String> {
        let part = |part: &str| self.tensor(&format!("{name}.{part}"), &[HIDDEN_SIZE]);
        Ok(Norm { scale: part("weight")?, shift: part("bias")? })
    }

    fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, String> {
        Ok(Linear {
            weights: self.tensor(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: self.tensor(&format!("{name}.bias"), &[outputs])?,
        })
    }

    fn layer(&self, index: usize) -> Result<Layer, String> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"), HIDDEN_SIZE, HIDDEN_SIZE)?,
            key: self.linear(&name("attention.self.key"), HIDDEN_SIZE, HIDDEN_SIZE)?,
            value: self.linear(&name("attention.self.value"), HIDDEN_SIZE, HIDDEN_SIZE)?,
            attention_output: self.linear(&name("attention.output.dense"), HIDDEN_SIZE, HIDDEN_SIZE)?,
            attention_norm: self.norm(&name("attention.output.LayerNorm"))?,
            intermediate: self.linear(&name("intermediate.dense"), INTERMEDIATE_SIZE, HIDDEN_SIZE)?,
            output: self.linear(&name("output.dense"), HIDDEN_SIZE, INTERMEDIATE_SIZE)?,
            output_norm: self.norm(&name("output.LayerNorm"))?,
        })
    }
}
