//! `model.safetensors`, mapped into memory: pages are read when they are needed, and shared by processes. The file is put
//! in its place whole and never written again, which is what mapping it relies on.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use serde::Deserialize;

use super::kernel::OUTPUTS;

pub(crate) const WIDTH: usize = 384;
pub(super) const INNER: usize = 1536;
pub(super) const LAYERS: usize = 6;
pub(super) const VOCABULARY: usize = 30_522;
const POSITIONS: usize = 512;

const _: () = assert!(WIDTH.is_multiple_of(OUTPUTS) && INNER.is_multiple_of(OUTPUTS));

/// The numbers of the model. Each is a place in the mapped file.
#[derive(Debug)]
pub(super) struct Weights {
    map: Mmap,
    pub words: Tensor,
    pub positions: Tensor,
    pub kinds: Tensor,
    pub norm: Norm,
    pub layers: Vec<Layer>,
}

/// Where a matrix lies, in bytes.
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
    pub joined: Linear,
    pub after_attention: Norm,
    pub widen: Linear,
    pub narrow: Linear,
    pub after_all: Norm,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl Weights {
    /// Maps the file and finds every matrix in it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
        let file = File::open(path).map_err(told)?;
        // Installed files are replaced, never written to: the mapping cannot change underneath.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(told)?;
        Self::read(map).map_err(|error| format!("{} is not this model: {error}", path.display()))
    }

    fn read(map: Mmap) -> Result<Self, String> {
        let table = Table::read(&map)?;
        Ok(Self {
            words: table.find("embeddings.word_embeddings.weight", &[VOCABULARY, WIDTH])?,
            positions: table.find("embeddings.position_embeddings.weight", &[POSITIONS, WIDTH])?,
            kinds: table.find("embeddings.token_type_embeddings.weight", &[2, WIDTH])?,
            norm: table.norm("embeddings.LayerNorm")?,
            layers: (0..LAYERS).map(|index| table.layer(index)).collect::<Result<_, _>>()?,
            map,
        })
    }

    /// The numbers of a matrix. Their place was checked when the file was opened.
    #[inline(always)]
    pub(super) fn of(&self, tensor: &Tensor) -> &[f32] {
        bytemuck::cast_slice(&self.map[tensor.0.clone()])
    }
}

/// The head of the file: what is where.
struct Table {
    entries: HashMap<String, serde_json::Value>,
    start: usize,
    length: usize,
}

impl Table {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        if cfg!(target_endian = "big") {
            return Err("it can only be mapped on little-endian machines".to_owned());
        }
        let (size, rest) = bytes.split_first_chunk::<8>().ok_or("it is too short")?;
        let size = usize::try_from(u64::from_le_bytes(*size)).map_err(|_| "its head is too long")?;
        let head = rest.get(..size).ok_or("it is cut off")?;
        let entries =
            serde_json::from_slice(head).map_err(|error| format!("its head is damaged: {error}"))?;
        Ok(Self { entries, start: 8 + size, length: bytes.len() })
    }

    fn find(&self, name: &str, shape: &[usize]) -> Result<Tensor, String> {
        let entry = self.entries.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
        let entry = Entry::deserialize(entry).map_err(|error| format!("`{name}`: {error}"))?;
        let (from, to) = entry.data_offsets;
        let (Some(from), Some(to)) = (self.start.checked_add(from), self.start.checked_add(to)) else {
            return Err(format!("`{name}` lies outside of the file"));
        };
        let size = 4 * shape.iter().product::<usize>();
        if entry.dtype != "F32" || entry.shape != shape || to.checked_sub(from) != Some(size) {
            return Err(format!("`{name}` is not {shape:?} of F32"));
        }
        if to > self.length || !from.is_multiple_of(4) {
            return Err(format!("`{name}` is cut off or out of line"));
        }
        Ok(Tensor(from..to))
    }

    fn norm(&self, name: &str) -> Result<Norm, String> {
        let part = |part: &str| self.find(&format!("{name}.{part}"), &[WIDTH]);
        Ok(Norm { scale: part("weight")?, shift: part("bias")? })
    }

    fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, String> {
        Ok(Linear {
            weights: self.find(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: self.find(&format!("{name}.bias"), &[outputs])?,
        })
    }

    fn layer(&self, index: usize) -> Result<Layer, String> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"), WIDTH, WIDTH)?,
            key: self.linear(&name("attention.self.key"), WIDTH, WIDTH)?,
            value: self.linear(&name("attention.self.value"), WIDTH, WIDTH)?,
            joined: self.linear(&name("attention.output.dense"), WIDTH, WIDTH)?,
            after_attention: self.norm(&name("attention.output.LayerNorm"))?,
            widen: self.linear(&name("intermediate.dense"), INNER, WIDTH)?,
            narrow: self.linear(&name("output.dense"), WIDTH, INNER)?,
            after_all: self.norm(&name("output.LayerNorm"))?,
        })
    }
}
