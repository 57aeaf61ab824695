//! Where pictures are kept: a directory of files with names that nobody can guess, and a record for each call that made
//! some, by which the same call gets the same pictures, also after a restart.
//!
//! A file is written under another name and renamed, and a record is written after its pictures: whatever is there is
//! whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::kind::Kind;
use crate::Fault;

/// Bytes of a name: 128 bits.
const RANDOM: usize = 16;

/// A picture that was made.
#[derive(Debug)]
pub(super) struct Made {
    pub bytes: Vec<u8>,
    pub kind: Kind,
    pub width: u32,
    pub height: u32,
    pub revised_prompt: Option<String>,
}

/// A picture that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub kind: Kind,
    pub width: u32,
    pub height: u32,
    pub revised_prompt: Option<String>,
}

/// The directory of all pictures.
#[derive(Debug, Clone)]
pub struct Shelf(PathBuf);

impl Shelf {
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// The picture with this name, and what it is. It blocks.
    pub fn read(&self, name: &str) -> Option<(Kind, Vec<u8>)> {
        let kind = Kind::of_ending(name.rsplit_once('.').filter(|_| is_name(name))?.1)?;
        fs::read(self.0.join(name)).ok().map(|bytes| (kind, bytes))
    }

    /// What was made for this call. Another request under the same id is a mistake.
    pub(super) async fn known(&self, call: &str, request: &str) -> Result<Option<Vec<Entry>>, Fault> {
        let path = self.record(call);
        let text = beside(move || match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        });
        let Some(text) = text.await? else { return Ok(None) };
        let record: Value = serde_json::from_slice(&text).map_err(|error| lost(&error))?;
        if record["request"] != request {
            return Err(Fault::invalid("this executionId was used for another request"));
        }
        let entries = record["images"].as_array().map(|images| images.iter().map(Entry::read).collect());
        entries.flatten().map(Some).ok_or_else(|| lost(&"a record has another form"))
    }

    /// Keeps what was made for a call.
    pub(super) async fn keep(&self, call: &str, request: &str, made: Vec<Made>) -> Result<Vec<Entry>, Fault> {
        let (shelf, record, request) = (self.clone(), self.record(call), request.to_owned());
        let keep = move || {
            shelf.prepare()?;
            let entries = made.iter().map(|made| shelf.put(made)).collect::<io::Result<Vec<_>>>()?;
            let images: Vec<Value> = entries.iter().map(Entry::to_json).collect();
            let text = json!({ "request": request, "images": images }).to_string();
            shelf.write(&record, text.as_bytes())?;
            Ok(entries)
        };
        beside(keep).await
    }

    fn record(&self, call: &str) -> PathBuf {
        self.0.join(format!("{call}.json"))
    }

    fn put(&self, made: &Made) -> io::Result<Entry> {
        let Made { bytes, kind, width, height, revised_prompt } = made;
        let name = format!("{}.{}", random()?, kind.ending());
        self.write(&self.0.join(&name), bytes)?;
        let revised_prompt = revised_prompt.clone();
        Ok(Entry { name, kind: *kind, width: *width, height: *height, revised_prompt })
    }

    /// Pictures are their users' business.
    fn prepare(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let draft = self.0.join(format!(".{}", random()?));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&draft).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
            File::open(&self.0)?.sync_all()
        });
        if written.is_err() {
            // What is left of it would never be looked at.
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

/// Whether this can be the name of a picture: what else is in the directory, or outside of it, is not served.
pub fn is_name(name: &str) -> bool {
    let Some((stem, ending)) = name.split_once('.') else { return false };
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    stem.len() == 2 * RANDOM && stem.bytes().all(is_hex) && Kind::of_ending(ending).is_some()
}

impl Entry {
    fn to_json(&self) -> Value {
        let Self { name, width, height, revised_prompt, .. } = self;
        json!({ "name": name, "width": width, "height": height, "revisedPrompt": revised_prompt })
    }

    fn read(value: &Value) -> Option<Self> {
        let name = value["name"].as_str().filter(|name| is_name(name))?;
        let side = |name: &str| value[name].as_u64().and_then(|side| u32::try_from(side).ok());
        Some(Self {
            name: name.to_owned(),
            kind: Kind::of_ending(name.rsplit_once('.')?.1)?,
            width: side("width")?,
            height: side("height")?,
            revised_prompt: value["revisedPrompt"].as_str().map(str::to_owned),
        })
    }
}

/// SHA-256 of these texts, each with its length.
pub(super) fn digest<T: AsRef<str>>(parts: &[T]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.as_ref().len() as u64).to_le_bytes());
        hasher.update(part.as_ref());
    }
    hex(&hasher.finalize())
}

fn random() -> io::Result<String> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect()
}

/// Files are read and written beside the threads that serve.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| lost(&error)),
        Err(error) => Err(lost(&error)),
    }
}

/// The reason lies in the machine. Pictures may have been made, and are lost.
fn lost(error: &dyn std::fmt::Display) -> Fault {
    tracing::error!("an image could not be kept: {error}");
    Fault::timeout("the pictures could not be kept on this server")
}
