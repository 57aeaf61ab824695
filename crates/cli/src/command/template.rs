//! Files that are written from templates, all of them or none.

use std::path::Path;
use std::{fs, io};

/// A file to write: its path below the new directory, and its text.
#[derive(Debug)]
pub struct Template {
    pub path: String,
    pub text: String,
}

impl Template {
    /// Fills in `{{NAME}}` places.
    pub fn new(path: impl Into<String>, text: &str, values: &[(&str, &str)]) -> Self {
        let fill =
            |text: String, (name, value): &(&str, &str)| text.replace(&format!("{{{{{name}}}}}"), value);
        Self { path: path.into(), text: values.iter().fold(text.to_owned(), fill) }
    }
}

/// Writes the files below `dir`. One that does not exist yet appears only when all of them are there;
/// one that exists is expected to be empty, and is empty again when this fails.
pub fn write_dir(dir: &Path, files: &[Template]) -> io::Result<()> {
    if dir.is_dir() {
        return write_files(dir, files).inspect_err(|_| {
            for file in files.iter().filter_map(|file| file.path.split('/').next()) {
                let path = dir.join(file);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        });
    }
    let name = dir.file_name().map_or_else(|| "new".into(), |name| name.to_string_lossy());
    let staging = dir.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_files(&staging, files).and_then(|()| fs::rename(&staging, dir));
    written.inspect_err(|_| drop(fs::remove_dir_all(&staging)))
}

fn write_files(dir: &Path, files: &[Template]) -> io::Result<()> {
    for file in files {
        let path = dir.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.text)?;
    }
    Ok(())
}
