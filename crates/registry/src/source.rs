//! The tools directory on disk: which tools there are, and their files as text.
//! Everything that can be wrong with a file before its content matters is found here.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Finding, Place};
use crate::fingerprint::Fingerprint;

/// The largest file of a tool that is read. Real ones have a few kilobytes.
pub const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;

const CRLF_HELP: &str = "save it with LF line ends (`* text=auto eol=lf` in .gitattributes keeps them): otherwise the \
                         same tool has another version on another machine";

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

/// Reads a tool's files, keeps to the tools directory, and fingerprints what it read.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The tools directory with all links resolved.
    pub root: &'a Path,
    pub dir: &'a ToolDir,
    pub fingerprint: Fingerprint,
}

impl Reader<'_> {
    /// The text of `name`, a path inside the tool's directory.
    pub fn read(&mut self, name: &str) -> Result<String, Box<Finding>> {
        let path = self.dir.path.join(name);
        let finding = |code, message: String| Finding::error(code, name.to_owned(), Place::File, message);
        self.stay_inside(&path, name)?;
        let (bytes, metadata) = read_regular(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => finding("file-missing", format!("`{name}` is missing")),
            _ => finding("file-unreadable", format!("`{name}` cannot be read: {error}"))
                .help("it must be a regular, readable file"),
        })?;
        self.fingerprint.add(name, &metadata);
        if metadata.len() > MAX_FILE_BYTES {
            return Err(finding("file-too-large", format!("`{name}` has {} bytes", metadata.len()))
                .help(format!("a file of a tool may have at most {MAX_FILE_BYTES} bytes"))
                .into());
        }
        decode(bytes, name)
    }

    /// A link is followed only while it stays inside the tools directory.
    fn stay_inside(&mut self, path: &Path, name: &str) -> Result<(), Box<Finding>> {
        let linked = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        if linked {
            self.fingerprint.distrust();
        }
        if !linked && !self.dir.is_symlink && !name.contains('/') {
            return Ok(());
        }
        check_link(self.root, path, name.to_owned())
    }
}

/// Refuses a path that resolves to somewhere outside `root`, or to nowhere because links form a loop.
pub fn check_link(root: &Path, path: &Path, file: String) -> Result<(), Box<Finding>> {
    let shown = if file.is_empty() { "the directory".to_owned() } else { format!("`{file}`") };
    let refuse =
        |code, message, help| Err(Finding::error(code, file, Place::File, message).help(help).into());
    match fs::canonicalize(path) {
        Ok(target) if target.starts_with(root) => Ok(()),
        Ok(target) => refuse(
            "symlink-escape",
            format!("{shown} leads out of the tools directory, to {}", target.display()),
            "copy the file into the tools directory",
        ),
        // A plain file that is missing is the reader's finding, with its own words.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            Ok(())
        }
        Err(error) => refuse(
            "symlink-broken",
            format!("{shown} is a link that cannot be followed: {error}"),
            "links that form a loop or lead nowhere must be removed or mended",
        ),
    }
}

/// Opens only regular files: a named pipe would block the build for ever.
fn read_regular(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    // Taken before the content: a change while reading shows as a changed fingerprint next time.
    let metadata = file.metadata()?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(MAX_FILE_BYTES)).unwrap_or(0) + 1);
    file.by_ref().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes, metadata))
}

fn decode(bytes: Vec<u8>, name: &str) -> Result<String, Box<Finding>> {
    let finding = |code, place, message: String| Finding::error(code, name.to_owned(), place, message);
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        finding(
            "file-not-utf8",
            Place::File,
            format!("`{name}` is not UTF-8: the byte at offset {at}, line {line}"),
        )
        .help("save the file as UTF-8")
    })?;
    if text.starts_with('\u{feff}') {
        return Err(finding("file-bom", Place::File, format!("`{name}` begins with a byte order mark"))
            .help("save the file as UTF-8 without a BOM")
            .into());
    }
    if let Some(at) = text.find("\r\n") {
        let message = format!("`{name}` has Windows line ends (CRLF)");
        return Err(finding("file-crlf", Place::Span(at..at), message).help(CRLF_HELP).into());
    }
    Ok(text)
}
