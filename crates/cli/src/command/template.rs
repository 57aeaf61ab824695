//! Writes files from templates: all of them or none.

use std::path::Path;
use std::{fs, io};

use crate::output::Failure;

/// A file to write: its path below the new directory, and its text.
#[derive(Debug)]
pub struct Template {
    pub path: String,
    pub text: String,
}

impl Template {
    /// Replaces `{{NAME}}` by its value.
    pub fn new(path: impl Into<String>, text: &str, values: &[(&str, &str)]) -> Self {
        let fill =
            |text: String, (name, value): &(&str, &str)| text.replace(&format!("{{{{{name}}}}}"), value);
        Self { path: path.into(), text: values.iter().fold(text.to_owned(), fill) }
    }
}

/// Writes the files below `dir`, where none of them may exist. A new directory appears only when all files are written;
/// an existing one is as before if this fails.
pub fn write_dir(dir: &Path, files: &[Template]) -> io::Result<()> {
    if dir.is_dir() {
        return write_files(dir, files).inspect_err(|_| {
            for file in files.iter().rev() {
                let path = dir.join(&file.path);
                let _ = fs::remove_file(&path);
                // Only a directory that is empty now can be removed.
                let above = path.ancestors().skip(1).take_while(|above| *above != dir);
                above.for_each(|above| drop(fs::remove_dir(above)));
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

pub fn cannot_write(dir: &Path, error: &io::Error) -> Failure {
    let help = "check the permissions, or name another directory";
    Failure::new(format!("cannot write {}: {error}", dir.display()), help)
}
