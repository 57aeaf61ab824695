//! Reads a tool's files as text, and rejects files that cannot be used whatever their content is.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::diagnostic::{DiagnosticDraft, Location, position};
use crate::fingerprint::Fingerprint;
use crate::source::ToolDir;

/// The largest file that is read. Real ones have a few kilobytes.
pub const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;

const CRLF_HELP: &str = "save it with LF line endings (`* text=auto eol=lf` in .gitattributes does so): otherwise \
                         the same tool has another version on another machine";

/// Reads a tool's files, never outside of the tools directory, and fingerprints them.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The tools directory with all links resolved.
    root: &'a Path,
    dir: &'a ToolDir,
    pub fingerprint: Fingerprint,
}

impl<'a> Reader<'a> {
    /// Opens a tool's directory. A link that leads out of the tools directory is an error.
    pub fn open(root: &'a Path, dir: &'a ToolDir) -> Result<Self, Box<DiagnosticDraft>> {
        let mut fingerprint = Fingerprint::default();
        if dir.is_symlink {
            fingerprint.mark_unreliable();
            check_link(root, &dir.path, String::new())?;
        }
        fingerprint.add_dir(&dir.path);
        Ok(Self { root, dir, fingerprint })
    }

    /// The names of all files in the directory.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Whether the directory has an entry of this name.
    pub fn has(&self, name: &str) -> bool {
        self.dir.path.join(name).symlink_metadata().is_ok()
    }

    /// The text of `name`, a path inside the tool's directory.
    pub fn read(&mut self, name: &str) -> Result<String, Box<DiagnosticDraft>> {
        let error =
            |code, message: String| DiagnosticDraft::error(code, name.to_owned(), Location::File, message);
        let path = self.dir.path.join(name);
        let unlinked = self.root.join(&self.dir.name).join(name);
        let has_links =
            self.dir.is_symlink || name.contains('/') && fs::canonicalize(&path).ok() != Some(unlinked);
        let mut read = if has_links { Err(link_error()) } else { read_regular(&path, SymlinkPolicy::Refuse) };
        if read.as_ref().is_err_and(|error| error.raw_os_error() == link_error().raw_os_error()) {
            // The target of a link may change without a change of the link's metadata.
            self.fingerprint.mark_unreliable();
            check_link(self.root, &path, name.to_owned())?;
            read = read_regular(&path, SymlinkPolicy::Follow);
        }
        let (bytes, metadata) = read.map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => error("file-missing", format!("`{name}` is missing")),
            _ => error("file-unreadable", format!("`{name}` cannot be read: {cause}"))
                .with_help("it must be a regular, readable file"),
        })?;
        self.fingerprint.add(name, &metadata);
        if metadata.len() > MAX_FILE_BYTES {
            let message =
                format!("`{name}` has {} bytes, at most {MAX_FILE_BYTES} are allowed", metadata.len());
            return Err(error("file-too-large", message).with_help("keep generated data out of it").into());
        }
        decode(bytes, name)
    }
}

/// How a symbolic link is opened.
#[derive(Clone, Copy)]
enum SymlinkPolicy {
    Refuse,
    Follow,
}

/// The error of opening a link with `SymlinkPolicy::Refuse`.
fn link_error() -> io::Error {
    io::Error::from_raw_os_error(libc::ELOOP)
}

/// Rejects a path that resolves to a place outside of `root`, or that does not resolve.
pub fn check_link(root: &Path, path: &Path, file: String) -> Result<(), Box<DiagnosticDraft>> {
    let name = if file.is_empty() {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        file.clone()
    };
    let refuse = |code, message, help| {
        Err(DiagnosticDraft::error(code, file, Location::File, message).with_help(help).into())
    };
    match fs::canonicalize(path) {
        Ok(target) if target.starts_with(root) => Ok(()),
        Ok(target) => refuse(
            "symlink-escape",
            format!("`{name}` links to {}, outside of the tools directory", target.display()),
            "copy the file into the tools directory",
        ),
        // A missing file is reported by the reader.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            Ok(())
        }
        Err(error) => refuse(
            "symlink-broken",
            format!("`{name}` is a link that cannot be followed: {error}"),
            "fix or remove the link",
        ),
    }
}

/// Reads a regular file. Opening never blocks: a named pipe would stop the build.
fn read_regular(path: &Path, links: SymlinkPolicy) -> io::Result<(Vec<u8>, Metadata)> {
    let file = open(path, links)?;
    // Read before the content: a change while reading changes the fingerprint of the next build.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Ok((Vec::new(), metadata));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(metadata.len()).read_to_end(&mut bytes)?;
    Ok((bytes, metadata))
}

#[cfg(unix)]
fn open(path: &Path, links: SymlinkPolicy) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = match links {
        SymlinkPolicy::Refuse => libc::O_NONBLOCK | libc::O_NOFOLLOW,
        SymlinkPolicy::Follow => libc::O_NONBLOCK,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, links: SymlinkPolicy) -> io::Result<File> {
    if matches!(links, SymlinkPolicy::Refuse) && path.is_symlink() {
        return Err(link_error());
    }
    OpenOptions::new().read(true).open(path)
}

/// Decodes a file of a tool: UTF-8 without a byte order mark, lines ended by LF.
pub(crate) fn decode(bytes: Vec<u8>, name: &str) -> Result<String, Box<DiagnosticDraft>> {
    let refuse = |code, before: &str, message: String, help| {
        let (line, column) = position(before, before.len());
        Err(DiagnosticDraft::error(code, name.to_owned(), Location::Position { line, column }, message)
            .with_help(help)
            .into())
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
            let message = format!("`{name}` is not UTF-8 at byte {at}");
            return refuse("file-not-utf8", &before, message, "save the file as UTF-8");
        }
    };
    if text.starts_with('\u{feff}') {
        let message = format!("`{name}` begins with a byte order mark");
        return refuse("file-bom", "", message, "save the file as UTF-8 without a BOM");
    }
    // A single byte is found much faster than a pair, and almost no file has it.
    if text.contains('\r')
        && let Some(at) = text.find("\r\n")
    {
        let message = format!("`{name}` has Windows line endings (CRLF)");
        return refuse("file-crlf", &text[..at], message, CRLF_HELP);
    }
    Ok(text)
}
