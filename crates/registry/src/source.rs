//! Finds the tool directories in the tools directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// One tool directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDir {
    /// The directory's name, as shown to people.
    pub name: String,
    pub path: PathBuf,
    /// A link is followed, but never assumed to be unchanged.
    pub is_symlink: bool,
}

/// The tools directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no tools directory `{}`", .0.display())]
    Missing(PathBuf),
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the tools directory `{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Missing(_) => {
                "name the directory (`toolwright build DIR`), or start a project with `toolwright init DIR`"
            }
            Self::NotADirectory(_) => "name the directory that contains the tool directories",
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
        // A broken link is included, and reported as a tool that cannot be read.
        let is_tool =
            kind.is_dir() || (is_symlink && fs::metadata(entry.path()).map_or(true, |m| m.is_dir()));
        if is_tool {
            found.push(ToolDir { name, path: entry.path(), is_symlink });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Whether a name is kebab-case: lower-case words, joined by `-`, beginning with a letter.
pub fn is_kebab(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
