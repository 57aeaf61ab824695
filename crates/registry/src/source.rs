//! The tools directory on disk: which tools there are.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// One tool directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDir {
    /// The directory's name, as shown to people.
    pub name: String,
    pub path: PathBuf,
    /// The directory entry is a symlink: followed, but never trusted to be unchanged.
    pub is_symlink: bool,
}

/// A directory of tools that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no tools directory at {}", .0.display())]
    Missing(PathBuf),
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the tools directory {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl Error {
    /// A way out, for the person at the terminal.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Missing(_) => {
                "name the directory (`toolwright build DIR`), or start a project with `toolwright init DIR`"
            }
            Self::NotADirectory(_) => "name the directory that holds the tool directories",
            Self::Unreadable { .. } => "check the directory's permissions",
        }
    }
}

/// All tool directories below `root`, sorted by name. Names that begin with `_` or `.` are not tools.
pub fn discover(root: &Path) -> Result<Vec<ToolDir>, Error> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Error::Missing(root.to_owned()),
        io::ErrorKind::NotADirectory => Error::NotADirectory(root.to_owned()),
        _ => Error::Unreadable { path: root.to_owned(), source },
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(['_', '.']) {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        let is_symlink = kind.is_symlink();
        // A link that leads nowhere, or to itself, is kept: it was meant as a tool and is reported as one.
        let is_tool =
            kind.is_dir() || (is_symlink && fs::metadata(entry.path()).map_or(true, |m| m.is_dir()));
        if is_tool {
            found.push(ToolDir { name, path: entry.path(), is_symlink });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Whether a tool's directory may have this name: lower-case words, joined by `-`, beginning with a letter.
pub fn is_kebab(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
