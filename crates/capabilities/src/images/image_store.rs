//! The directory of generated images: files with random names, and a JSON record for each execution id, so that the
//! same call gets the same images again, also after a restart.
//!
//! A file is written under a temporary name and renamed, and a record is written after its images, so that readers
//! never see incomplete data.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::image_format::ImageFormat;
use crate::{CapabilityError, Result};

/// Random bytes of a file name: 128 bits.
const NAME_BYTES: usize = 16;

/// A stored image, or one that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredImage {
    pub name: String,
    pub width: u32,
    pub height: u32,
    pub revised_prompt: Option<String>,
}

impl StoredImage {
    /// Names an image that the endpoint has returned. `None` if its format is not supported.
    pub fn new(bytes: &[u8], revised_prompt: Option<String>) -> Result<Option<Self>> {
        let Some((format, width, height)) = ImageFormat::detect(bytes) else { return Ok(None) };
        let name = random_name().map_err(|error| storage_error(&error))?;
        let name = format!("{name}.{}", format.extension());
        Ok(Some(Self { name, width, height, revised_prompt }))
    }

    /// `None` if the name is not one of an image.
    pub fn format(&self) -> Option<ImageFormat> {
        format_of_name(&self.name)
    }
}

/// The images of one execution id.
#[derive(Serialize, Deserialize)]
struct ExecutionImages {
    /// A digest of the request.
    request: String,
    images: Vec<StoredImage>,
}

/// The directory of all images.
#[derive(Debug, Clone)]
pub struct ImageStore(PathBuf);

impl ImageStore {
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// Reads an image by its file name. It blocks.
    pub fn read(&self, name: &str) -> Option<(ImageFormat, Vec<u8>)> {
        let format = format_of_name(name)?;
        fs::read(self.0.join(name)).ok().map(|bytes| (format, bytes))
    }

    /// The images that this execution has already stored. The same id with another request is an error.
    pub(super) async fn find(&self, execution: &str, request: &str) -> Result<Option<Vec<StoredImage>>> {
        let path = self.record_path(execution);
        let text = run_blocking(move || match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        });
        let Some(text) = text.await? else { return Ok(None) };
        let record: ExecutionImages = serde_json::from_slice(&text).map_err(|error| storage_error(&error))?;
        if record.request != request {
            return Err(CapabilityError::invalid("this executionId was used for another request"));
        }
        if record.images.iter().any(|image| image.format().is_none()) {
            return Err(storage_error(&"a record contains an invalid image name"));
        }
        Ok(Some(record.images))
    }

    /// Stores the images of an execution.
    pub(super) async fn save(
        &self,
        execution: &str,
        request: &str,
        images: Vec<(StoredImage, Vec<u8>)>,
    ) -> Result<Vec<StoredImage>> {
        let (store, path, request) = (self.clone(), self.record_path(execution), request.to_owned());
        run_blocking(move || {
            store.create_dir()?;
            for (image, bytes) in &images {
                store.write(&store.0.join(&image.name), bytes)?;
            }
            let images = images.into_iter().map(|(image, _)| image).collect();
            let record = ExecutionImages { request, images };
            store.write(&path, &serde_json::to_vec(&record)?)?;
            Ok(record.images)
        })
        .await
    }

    fn record_path(&self, execution: &str) -> PathBuf {
        self.0.join(format!("{execution}.json"))
    }

    /// Readable by the owner alone: images are private.
    fn create_dir(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.0.join(format!(".{}", random_name()?));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            File::open(&self.0)?.sync_all()
        });
        if written.is_err() {
            // Best effort: an incomplete file is never read.
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// Whether this can be the file name of an image. Nothing else in the directory, or outside of it, is served.
pub fn is_image_name(name: &str) -> bool {
    format_of_name(name).is_some()
}

fn format_of_name(name: &str) -> Option<ImageFormat> {
    let (stem, extension) = name.split_once('.')?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_stem = stem.len() == 2 * NAME_BYTES && stem.bytes().all(is_hex);
    ImageFormat::from_extension(extension).filter(|_| is_stem)
}

/// The SHA-256 of these texts, each with its length, in hexadecimal.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; NAME_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| storage_error(&error)),
        Err(error) => Err(storage_error(&error)),
    }
}

/// `TIMEOUT`, because images may have been generated and charged. The cause is only logged.
fn storage_error(error: &dyn std::fmt::Display) -> CapabilityError {
    tracing::error!("could not store or read an image: {error}");
    CapabilityError::timeout("the images could not be stored on this server")
}
