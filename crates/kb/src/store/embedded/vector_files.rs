//! Vectors on disk: immutable files, each with its keys, sketches and quantized vectors. A file appears atomically, so
//! that a process may die at any moment and readers need no lock.
//!
//! ```text
//! "TWVECT01"  length of the header: u64   header: JSON, padded with spaces to 64 bytes
//! keys: u64 × rows               scales: f32 × rows, padded to 8 bytes
//! sketches: u64 × words × rows   rows: i8 × dimensions × rows
//! ```
//! Quantization: a row times its scale is the vector; its sketch has one bit per sign. Numbers are in the machine's
//! byte order, which the magic number detects.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tantivy::directory::error::OpenReadError;
use tantivy::directory::{Directory as _, MmapDirectory, OwnedBytes};

use super::generation::write_atomically;
use super::io_error;
use crate::store::{EmbedderId, Error, Result};

const MAGIC: u64 = u64::from_ne_bytes(*b"TWVECT01");
const EXTENSION: &str = "vec";
/// New rows are merged with older files that have fewer than this many times their rows.
const MERGE_RATIO: usize = 2;
/// How often opening is retried while merges replace files.
const MAX_OPEN_ATTEMPTS: usize = 10;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    #[serde(rename = "maker")]
    embedder: EmbedderId,
    rows: usize,
}

/// A memory-mapped file.
#[derive(Debug)]
struct VectorFile {
    name: String,
    embedder: EmbedderId,
    rows: usize,
    bytes: OwnedBytes,
    keys_at: usize,
    scales_at: usize,
    sketches_at: usize,
    rows_at: usize,
}

/// All vectors of one moment. Row numbers count through the files.
#[derive(Debug)]
pub struct Vectors {
    files: Vec<Arc<VectorFile>>,
    /// The number of the first row of each file.
    first_rows: Vec<u32>,
    by_key: HashMap<u64, u32, foldhash::fast::RandomState>,
}

/// The number of `u64` words in a sketch.
fn sketch_words(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

/// Binary quantization: one bit per sign.
pub fn sketch(vector: &[f32]) -> Vec<u64> {
    let word = |part: &[f32]| {
        part.iter().enumerate().fold(0_u64, |word, (at, value)| word | u64::from(*value > 0.0) << at)
    };
    vector.chunks(64).map(word).collect()
}

/// Scalar quantization: int8 values and their scale.
pub fn quantize(vector: &[f32]) -> (Vec<i8>, f32) {
    let max = vector.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
    let scale = if max > 0.0 { max / 127.0 } else { 1.0 };
    (vector.iter().map(|value| (value / scale).round() as i8).collect(), scale)
}

impl Vectors {
    /// Opens the files of a directory, and reuses those that `previous` has open. If all are the same, returns
    /// `previous`.
    pub fn open(dir: &Path, previous: Option<&Arc<Self>>) -> Result<Arc<Self>> {
        let known = previous.map_or(&[][..], |previous| &previous.files[..]);
        // A merge may remove a file between listing and opening; its rows are in a newer file then.
        for _ in 0..MAX_OPEN_ATTEMPTS {
            let Some(files) = open_files(dir, known)? else { continue };
            let is_same = files.len() == known.len()
                && files.iter().zip(known).all(|(left, right)| Arc::ptr_eq(left, right));
            return Ok(match previous {
                Some(previous) if is_same => Arc::clone(previous),
                _ => Arc::new(Self::new(files)),
            });
        }
        Err(Error::Corrupt(format!("the vector files in {} change too fast", dir.display())))
    }

    fn new(files: Vec<Arc<VectorFile>>) -> Self {
        let (mut first_rows, mut by_key) = (Vec::new(), HashMap::default());
        let mut first = 0;
        for file in &files {
            by_key.extend(file.keys().iter().copied().zip(first..));
            first_rows.push(first);
            first += file.rows as u32;
        }
        Self { files, first_rows, by_key }
    }

    /// The number of rows, with unused ones.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.rows).sum()
    }

    pub fn embedder(&self) -> Option<&EmbedderId> {
        self.files.first().map(|file| &file.embedder)
    }

    /// The row of a passage.
    pub fn row_of(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    pub fn sketch(&self, row: u32) -> &[u64] {
        let (file, at) = self.locate(row);
        let words = sketch_words(file.embedder.dimensions);
        &file.sketches()[at * words..][..words]
    }

    /// The quantized vector and its scale.
    pub fn row(&self, row: u32) -> (&[i8], f32) {
        let (file, at) = self.locate(row);
        let dimensions = file.embedder.dimensions;
        (&file.quantized()[at * dimensions..][..dimensions], file.scales()[at])
    }

    fn locate(&self, row: u32) -> (&VectorFile, usize) {
        let at = self.first_rows.partition_point(|first| *first <= row).saturating_sub(1);
        (&self.files[at], (row - self.first_rows[at]) as usize)
    }

    /// Writes a file with these vectors, merged with small files, so that each file is much larger than the next.
    pub fn add(&self, dir: &Path, embedder: &EmbedderId, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        let mut builder = VectorFileBuilder::new(embedder);
        for (key, vector) in vectors {
            let (row, scale) = quantize(vector);
            builder.push(*key, scale, &sketch(vector), &row);
        }
        let mut merged = Vec::new();
        for file in self.files.iter().rev() {
            if file.rows >= MERGE_RATIO * builder.keys.len() {
                break;
            }
            builder.append(file);
            merged.push(&file.name);
        }
        let last =
            self.files.iter().filter_map(|file| file.name.split('-').next()?.parse::<u64>().ok()).max();
        builder.write(dir, last.unwrap_or(0) + 1)?;
        for name in merged {
            fs::remove_file(dir.join(name)).map_err(|error| io_error(dir, &error))?;
        }
        Ok(())
    }

    pub fn remove_all(dir: &Path) -> Result<()> {
        for path in list_vector_files(dir)? {
            fs::remove_file(&path).map_err(|error| io_error(dir, &error))?;
        }
        Ok(())
    }

    /// Writes the rows with these keys into another directory, as one file.
    pub fn copy(&self, dir: &Path, keys: &HashSet<u64>) -> Result<()> {
        let Some(embedder) = self.embedder() else { return Ok(()) };
        let mut builder = VectorFileBuilder::new(embedder);
        for key in keys {
            if let Some(row) = self.row_of(*key) {
                let (quantized, scale) = self.row(row);
                builder.push(*key, scale, self.sketch(row), quantized);
            }
        }
        if builder.keys.is_empty() { Ok(()) } else { builder.write(dir, 1) }
    }
}

impl VectorFile {
    /// Maps a file, or returns `None` if it does not exist.
    fn open(dir: &Path, name: &str) -> Result<Option<Self>> {
        let corrupt = |reason: &str| Error::Corrupt(format!("{}: {reason}", dir.join(name).display()));
        let directory = MmapDirectory::open(dir).map_err(|error| corrupt(&error.to_string()))?;
        let bytes = match directory.open_read(Path::new(name)) {
            Ok(file) => file.read_bytes().map_err(|error| corrupt(&error.to_string()))?,
            Err(OpenReadError::FileDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(corrupt(&error.to_string())),
        };
        let start: &[u64] =
            bytes.get(..16).and_then(|start| bytemuck::try_cast_slice(start).ok()).unwrap_or(&[]);
        let &[MAGIC, header_len] = start else {
            return Err(corrupt("not a vector file of this version"));
        };
        let keys_at = 16 + usize::try_from(header_len).unwrap_or(usize::MAX).min(bytes.len());
        let header: Header = bytes
            .get(16..keys_at)
            .and_then(|header| serde_json::from_slice(header).ok())
            .ok_or_else(|| corrupt("its header is invalid"))?;
        let Header { embedder, rows } = header;
        let scales_at = keys_at + rows * 8;
        let sketches_at = scales_at + (rows * 4).next_multiple_of(8);
        let rows_at = sketches_at + rows * sketch_words(embedder.dimensions) * 8;
        if bytes.len() != rows_at + rows * embedder.dimensions {
            return Err(corrupt("it has the wrong length"));
        }
        let name = name.to_owned();
        Ok(Some(Self { name, embedder, rows, bytes, keys_at, scales_at, sketches_at, rows_at }))
    }

    // The casts cannot fail: a mapping begins at a page, and each part at a multiple of 8 bytes.
    fn keys(&self) -> &[u64] {
        bytemuck::try_cast_slice(&self.bytes[self.keys_at..self.scales_at]).unwrap_or_default()
    }

    fn scales(&self) -> &[f32] {
        bytemuck::try_cast_slice(&self.bytes[self.scales_at..][..self.rows * 4]).unwrap_or_default()
    }

    fn sketches(&self) -> &[u64] {
        bytemuck::try_cast_slice(&self.bytes[self.sketches_at..self.rows_at]).unwrap_or_default()
    }

    fn quantized(&self) -> &[i8] {
        bytemuck::try_cast_slice(&self.bytes[self.rows_at..]).unwrap_or_default()
    }
}

/// The content of a file that is not written yet.
struct VectorFileBuilder {
    embedder: EmbedderId,
    keys: Vec<u64>,
    scales: Vec<f32>,
    sketches: Vec<u64>,
    quantized: Vec<i8>,
}

impl VectorFileBuilder {
    fn new(embedder: &EmbedderId) -> Self {
        let embedder = embedder.clone();
        Self { embedder, keys: Vec::new(), scales: Vec::new(), sketches: Vec::new(), quantized: Vec::new() }
    }

    fn push(&mut self, key: u64, scale: f32, sketch: &[u64], row: &[i8]) {
        self.keys.push(key);
        self.scales.push(scale);
        self.sketches.extend_from_slice(sketch);
        self.quantized.extend_from_slice(row);
    }

    fn append(&mut self, file: &VectorFile) {
        self.keys.extend_from_slice(file.keys());
        self.scales.extend_from_slice(file.scales());
        self.sketches.extend_from_slice(file.sketches());
        self.quantized.extend_from_slice(file.quantized());
    }

    /// Writes the file atomically. Its name contains a random number, because readers identify files by name, and
    /// numbers start again after all vectors are dropped.
    fn write(self, dir: &Path, number: u64) -> Result<()> {
        let name = format!("{number:08}-{:016x}.{EXTENSION}", RandomState::new().build_hasher().finish());
        let header = Header { embedder: self.embedder, rows: self.keys.len() };
        let mut header = serde_json::to_vec(&header).map_err(|error| Error::Unusable(error.to_string()))?;
        header.resize((16 + header.len()).next_multiple_of(64) - 16, b' ');
        write_atomically(dir, &name, |file| {
            file.write_all(bytemuck::cast_slice(&[MAGIC, header.len() as u64]))?;
            file.write_all(&header)?;
            file.write_all(bytemuck::cast_slice(&self.keys))?;
            file.write_all(bytemuck::cast_slice(&self.scales))?;
            file.write_all(&[0; 4][..(self.scales.len() % 2) * 4])?;
            file.write_all(bytemuck::cast_slice(&self.sketches))?;
            file.write_all(bytemuck::cast_slice(&self.quantized))
        })
    }
}

/// The files in the order of their numbers, or `None` if one was removed meanwhile.
fn open_files(dir: &Path, known: &[Arc<VectorFile>]) -> Result<Option<Vec<Arc<VectorFile>>>> {
    let mut files: Vec<Arc<VectorFile>> = Vec::new();
    for path in list_vector_files(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = match known.iter().find(|file| file.name == name) {
            Some(file) => Arc::clone(file),
            None => match VectorFile::open(dir, &name)? {
                Some(file) => Arc::new(file),
                None => return Ok(None),
            },
        };
        if files.first().is_some_and(|first| first.embedder != file.embedder) {
            return Err(Error::Corrupt(format!("{} contains vectors of two embedders", dir.display())));
        }
        files.push(file);
    }
    Ok(Some(files))
}

/// The paths of the vector files, sorted.
pub fn list_vector_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| io_error(dir, &error))? {
        let path = entry.map_err(|error| io_error(dir, &error))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
