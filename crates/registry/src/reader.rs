//! A tool's files as text. Everything that can be wrong with a file before its content matters is found here.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Finding, Place, position};
use crate::fingerprint::Fingerprint;
use crate::source::ToolDir;

/// The largest file of a tool that is read. Real ones have a few kilobytes.
pub const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;

const CRLF_HELP: &str = "save it with LF line ends (`* text=auto eol=lf` in .gitattributes keeps them): otherwise the \
                         same tool has another version on another machine";

/// Reads a tool's files, keeps to the tools directory, and fingerprints what it read.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The tools directory with all links resolved.
    root: &'a Path,
    dir: &'a ToolDir,
    pub fingerprint: Fingerprint,
}

impl<'a> Reader<'a> {
    /// Looks into the directory; one that leads out of the tools directory is refused.
    pub fn open(root: &'a Path, dir: &'a ToolDir) -> Result<Self, Box<Finding>> {
        let mut fingerprint = Fingerprint::new();
        if dir.is_symlink {
            fingerprint.distrust();
            check_link(root, &dir.path, String::new())?;
        }
        fingerprint.add_dir(&dir.path);
        Ok(Self { root, dir, fingerprint })
    }

    /// Where the directory really is, when no link is involved.
    fn home(&self) -> PathBuf {
        self.root.join(&self.dir.name)
    }

    /// The names of what is in the directory, for saying what was probably meant.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Whether the directory has something of this name.
    pub fn has(&self, name: &str) -> bool {
        self.dir.path.join(name).symlink_metadata().is_ok()
    }

    /// The text of `name`, a path inside the tool's directory.
    pub fn read(&mut self, name: &str) -> Result<String, Box<Finding>> {
        let finding = |code, message: String| Finding::error(code, name.to_owned(), Place::File, message);
        let path = self.dir.path.join(name);
        let is_home = !name.contains('/') || fs::canonicalize(&path).ok() == Some(self.home().join(name));
        let mut read =
            if is_home && !self.dir.is_symlink { read_regular(&path, Links::Refuse) } else { Err(link()) };
        if read.as_ref().is_err_and(|error| error.raw_os_error() == link().raw_os_error()) {
            // What links lead to may change without any trace here.
            self.fingerprint.distrust();
            check_link(self.root, &path, name.to_owned())?;
            read = read_regular(&path, Links::Follow);
        }
        let (bytes, metadata) = read.map_err(|error| match error.kind() {
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
}

/// Whether a link in a file's place is followed.
#[derive(Clone, Copy)]
enum Links {
    Refuse,
    Follow,
}

/// The error that opening a link gives when links are refused.
fn link() -> io::Error {
    io::Error::from_raw_os_error(libc::ELOOP)
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

/// Opens only regular files, and without waiting: a named pipe would block the build for ever.
fn read_regular(path: &Path, links: Links) -> io::Result<(Vec<u8>, Metadata)> {
    let mut file = open(path, links)?;
    // Taken before the content: a change while reading shows as a changed fingerprint next time.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Ok((Vec::new(), metadata));
    }
    let length = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = vec![0; length];
    // A file that shrinks meanwhile is read as far as it goes.
    let mut filled = 0;
    while filled < length {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok((bytes, metadata))
}

#[cfg(unix)]
fn open(path: &Path, links: Links) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = match links {
        Links::Refuse => libc::O_NONBLOCK | libc::O_NOFOLLOW,
        Links::Follow => libc::O_NONBLOCK,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, links: Links) -> io::Result<File> {
    if matches!(links, Links::Refuse) && path.is_symlink() {
        return Err(link());
    }
    OpenOptions::new().read(true).open(path)
}

/// Text as every file of a tool must be: UTF-8 without a mark, lines ended by LF.
pub(crate) fn decode(bytes: Vec<u8>, name: &str) -> Result<String, Box<Finding>> {
    let refuse = |code, before: &str, message: String, help| {
        let (line, column) = position(before, before.len());
        Err(Finding::error(code, name.to_owned(), Place::At { line, column }, message).help(help).into())
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
        let message = format!("`{name}` has Windows line ends (CRLF)");
        return refuse("file-crlf", &text[..at], message, CRLF_HELP);
    }
    Ok(text)
}
