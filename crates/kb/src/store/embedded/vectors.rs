//! Vectors on disk: files that never change, each with its keys, sketches and int8 rows. A file appears whole under its
//! name or not at all, so that a process may die at any moment and readers need no lock.
//!
//! ```text
//! "TWVECT01"  length of the head: u64   head: JSON, padded with spaces to 64 bytes
//! keys: u64 × rows   scales: f32 × rows, padded to 8 bytes   sketches: u64 × words × rows   rows: i8 × dimensions × rows
//! ```
//! A row times its scale is the vector; its sketch has a bit for each sign. Numbers are in the machine's byte order,
//! which the magic shows.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tantivy::directory::{Directory as _, MmapDirectory, OwnedBytes};

use crate::store::{Error, Maker, Result};

const MAGIC: u64 = u64::from_ne_bytes(*b"TWVECT01");
const EXTENSION: &str = "vec";
/// A file is merged with the next one unless it has so many times its rows.
const RATIO: usize = 2;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    maker: Maker,
    rows: usize,
}

/// One file, mapped into memory.
#[derive(Debug)]
struct VectorFile {
    name: String,
    maker: Maker,
    rows: usize,
    bytes: OwnedBytes,
    keys_at: usize,
    scales_at: usize,
    sketches_at: usize,
    rows_at: usize,
}

/// All vectors of one moment. A row's number counts through the files.
#[derive(Debug, Default)]
pub struct Vectors {
    files: Vec<Arc<VectorFile>>,
    /// The number of the first row of each file.
    firsts: Vec<u32>,
    by_key: HashMap<u64, u32, foldhash::fast::RandomState>,
}

/// How many words a sketch has.
pub fn sketch_words(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

/// A bit for each sign.
pub fn sketch(vector: &[f32]) -> Vec<u64> {
    let word = |part: &[f32]| {
        part.iter().enumerate().fold(0_u64, |word, (at, value)| word | u64::from(*value > 0.0) << at)
    };
    vector.chunks(64).map(word).collect()
}

/// A vector as int8, and what one step of them is.
pub fn quantised(vector: &[f32]) -> (Vec<i8>, f32) {
    let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
    (vector.iter().map(|value| (value / scale).round() as i8).collect(), scale)
}

impl Vectors {
    /// Opens what the directory holds; `before` is kept where it still holds the same file.
    pub fn open(dir: &Path, before: &Self) -> Result<Self> {
        // A merge may remove a file between the listing and the opening; its rows are in a newer one then.
        for _ in 0..10 {
            if let Some(files) = open_files(dir, before)? {
                return Ok(Self::of(files));
            }
        }
        Err(Error::Damaged(format!("the vectors in {} change too fast", dir.display())))
    }

    fn of(files: Vec<Arc<VectorFile>>) -> Self {
        let mut all = Self::default();
        for file in files {
            let first = all.len() as u32;
            all.by_key.reserve(file.rows);
            for (at, key) in file.keys().iter().enumerate() {
                all.by_key.insert(*key, first + at as u32);
            }
            all.firsts.push(first);
            all.files.push(file);
        }
        all
    }

    /// Whether it is made of the same files.
    pub fn is_same(&self, other: &Self) -> bool {
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|(left, right)| Arc::ptr_eq(left, right))
    }

    /// Rows, used or not.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.rows).sum()
    }

    pub fn maker(&self) -> Option<&Maker> {
        self.files.first().map(|file| &file.maker)
    }

    /// The row of a passage.
    pub fn row_of(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    pub fn sketch(&self, row: u32) -> &[u64] {
        let (file, at) = self.place(row);
        let words = sketch_words(file.maker.dimensions);
        &file.sketches()[at * words..][..words]
    }

    pub fn row(&self, row: u32) -> (&[i8], f32) {
        let (file, at) = self.place(row);
        (&file.int8()[at * file.maker.dimensions..][..file.maker.dimensions], file.scales()[at])
    }

    fn place(&self, row: u32) -> (&VectorFile, usize) {
        let at = self.firsts.partition_point(|first| *first <= row).saturating_sub(1);
        (&self.files[at], (row - self.firsts[at]) as usize)
    }

    /// Adds a file with these vectors. Files are merged so that there are few, each much larger than the next.
    pub fn add(&self, dir: &Path, maker: &Maker, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        let mut rows = Rows::new(maker);
        for (key, vector) in vectors {
            let (row, scale) = quantised(vector);
            rows.push(*key, scale, &sketch(vector), &row);
        }
        let mut merged = Vec::new();
        for file in self.files.iter().rev() {
            if file.rows >= RATIO * rows.keys.len() {
                break;
            }
            rows.append(file);
            merged.push(&file.name);
        }
        let next = self.files.iter().filter_map(|file| number_of(&file.name)).max().unwrap_or(0) + 1;
        rows.write(dir, next)?;
        for name in merged {
            fs::remove_file(dir.join(name)).map_err(|error| unusable(dir, &error))?;
        }
        Ok(())
    }

    /// Removes all files.
    pub fn remove_all(dir: &Path) -> Result<()> {
        for path in listed(dir)? {
            fs::remove_file(&path).map_err(|error| unusable(dir, &error))?;
        }
        Ok(())
    }

    /// Writes the rows with these keys into another directory, as one file.
    pub fn copy(&self, dir: &Path, keys: &mut dyn Iterator<Item = u64>) -> Result<()> {
        let Some(maker) = self.maker() else { return Ok(()) };
        let mut rows = Rows::new(maker);
        let mut seen = std::collections::HashSet::new();
        for key in keys.filter(|key| seen.insert(*key)) {
            if let Some(row) = self.row_of(key) {
                let (int8, scale) = self.row(row);
                rows.push(key, scale, self.sketch(row), int8);
            }
        }
        if rows.keys.is_empty() { Ok(()) } else { rows.write(dir, 1) }
    }
}

impl VectorFile {
    fn open(dir: &Path, name: &str) -> Result<Option<Self>> {
        let damaged = |what: &str| Error::Damaged(format!("{}: {what}", dir.join(name).display()));
        let directory = MmapDirectory::open(dir).map_err(|error| damaged(&error.to_string()))?;
        let bytes = match directory.open_read(Path::new(name)) {
            Ok(file) => file.read_bytes().map_err(|error| damaged(&error.to_string()))?,
            Err(tantivy::directory::error::OpenReadError::FileDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(damaged(&error.to_string())),
        };
        let start: &[u64] =
            bytes.get(..16).and_then(|start| bytemuck::try_cast_slice(start).ok()).unwrap_or(&[]);
        let &[MAGIC, head_len] = start else { return Err(damaged("not a file of vectors of this version")) };
        let keys_at = 16 + usize::try_from(head_len).unwrap_or(usize::MAX).min(bytes.len());
        let head: Head = bytes
            .get(16..keys_at)
            .and_then(|head| serde_json::from_slice(head).ok())
            .ok_or_else(|| damaged("its head cannot be read"))?;
        let scales_at = keys_at + head.rows * 8;
        let sketches_at = scales_at + (head.rows * 4).next_multiple_of(8);
        let rows_at = sketches_at + head.rows * sketch_words(head.maker.dimensions) * 8;
        if bytes.len() != rows_at + head.rows * head.maker.dimensions {
            return Err(damaged("it is cut off"));
        }
        let (name, maker, rows) = (name.to_owned(), head.maker, head.rows);
        Ok(Some(Self { name, maker, rows, bytes, keys_at, scales_at, sketches_at, rows_at }))
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

    fn int8(&self) -> &[i8] {
        bytemuck::try_cast_slice(&self.bytes[self.rows_at..]).unwrap_or_default()
    }
}

/// A file before it is written.
struct Rows {
    maker: Maker,
    keys: Vec<u64>,
    scales: Vec<f32>,
    sketches: Vec<u64>,
    int8: Vec<i8>,
}

impl Rows {
    fn new(maker: &Maker) -> Self {
        let maker = maker.clone();
        Self { maker, keys: Vec::new(), scales: Vec::new(), sketches: Vec::new(), int8: Vec::new() }
    }

    fn push(&mut self, key: u64, scale: f32, sketch: &[u64], row: &[i8]) {
        self.keys.push(key);
        self.scales.push(scale);
        self.sketches.extend_from_slice(sketch);
        self.int8.extend_from_slice(row);
    }

    fn append(&mut self, file: &VectorFile) {
        self.keys.extend_from_slice(file.keys());
        self.scales.extend_from_slice(file.scales());
        self.sketches.extend_from_slice(file.sketches());
        self.int8.extend_from_slice(file.int8());
    }

    /// Under another name first: what has the name is whole, and on disk.
    /// No name is used twice, also when all vectors are made anew: readers know a file by its name.
    fn write(self, dir: &Path, number: u64) -> Result<()> {
        let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{number:08}-{moment:x}.{EXTENSION}");
        let head = Head { maker: self.maker, rows: self.keys.len() };
        let mut head = serde_json::to_vec(&head).map_err(|error| Error::Unusable(error.to_string()))?;
        head.resize((16 + head.len()).next_multiple_of(64) - 16, b' ');
        let (path, temporary) = (dir.join(&name), dir.join(format!("{name}.new")));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(bytemuck::cast_slice(&[MAGIC, head.len() as u64]))?;
            file.write_all(&head)?;
            file.write_all(bytemuck::cast_slice(&self.keys))?;
            file.write_all(bytemuck::cast_slice(&self.scales))?;
            file.write_all(&[0; 4][..(self.scales.len() % 2) * 4])?;
            file.write_all(bytemuck::cast_slice(&self.sketches))?;
            file.write_all(bytemuck::cast_slice(&self.int8))?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(dir)?.sync_all()
        };
        write().map_err(|error| unusable(dir, &error))
    }
}

/// The files in the order of their numbers; `None` when one went away meanwhile.
fn open_files(dir: &Path, before: &Vectors) -> Result<Option<Vec<Arc<VectorFile>>>> {
    let mut files: Vec<Arc<VectorFile>> = Vec::new();
    for path in listed(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = match before.files.iter().find(|file| file.name == name) {
            Some(kept) => Arc::clone(kept),
            None => match VectorFile::open(dir, &name)? {
                Some(file) => Arc::new(file),
                None => return Ok(None),
            },
        };
        if files.first().is_some_and(|first| first.maker != file.maker) {
            return Err(Error::Damaged(format!("{} holds vectors of two embedders", dir.display())));
        }
        files.push(file);
    }
    Ok(Some(files))
}

fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| unusable(dir, &error))? {
        let path = entry.map_err(|error| unusable(dir, &error))?.path();
        if path.extension().is_some_and(|found| found == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn number_of(name: &str) -> Option<u64> {
    name.split('-').next()?.parse().ok()
}

fn unusable(dir: &Path, error: &std::io::Error) -> Error {
    Error::Unusable(format!("{} cannot be used: {error}", dir.display()))
}
