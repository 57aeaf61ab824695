//! `tool_registry.json`: how it is laid out, versioned, and replaced in one step.
//!
//! Each member of the header has its own line, and so does each tool: a build copies the lines of unchanged tools, and
//! a person can search them.

#![expect(clippy::disallowed_methods, reason = "the age of a left-over temporary file")]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::compiled_tool::{Digests, hex, push_hex};
use crate::json::write_canonical;

/// The version of this layout.
pub const FORMAT_VERSION: u64 = 1;
/// The artifact's name beside the tools.
pub const FILE_NAME: &str = "tool_registry.json";
/// Precedes the handler's path, which the content digest does not cover.
pub(crate) const HANDLER_PATH: &str = ",\"handlerPath\":";

/// The start of the list of tools.
pub(crate) const TOOLS: &str = "\"tools\": [";

/// The end of the artifact.
pub(crate) const END: &str = "]\n}\n";

/// Before the first tool, between two tools, and after the last one.
const FIRST: &str = "\n    ";
const SEPARATOR: &str = ",\n    ";
const LAST: &str = "\n  ";
/// Numbers the temporary files of this process.
static TEMPORARY_FILES: AtomicU64 = AtomicU64::new(0);

/// Older temporary files are those of a build that was killed.
const LEFTOVER_AGE: Duration = Duration::from_secs(600);

/// The members before the tools.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub format_version: u64,
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    /// ISO 8601, UTC.
    pub build_timestamp: String,
}

/// `1.0.` and eight digits of the digest over the declarations of all tools.
pub fn version<'a>(tools: impl Iterator<Item = &'a Digests>) -> String {
    let digest = digest_list(tools.map(|tool| (tool.tool_id.as_str(), &tool.declaration)));
    format!("1.0.{}", &digest[..8])
}

/// The digest over the version and the contents of all tools, handlers included.
pub fn content_digest<'a>(version: &str, tools: impl Iterator<Item = &'a Digests>) -> String {
    content_digest_of(version, tools.map(|tool| (tool.tool_id.as_str(), &tool.content)))
}

pub(crate) fn content_digest_of<'a>(
    version: &str,
    tools: impl Iterator<Item = (&'a str, &'a [u8; 32])>,
) -> String {
    let tools = digest_list(tools);
    let mut canonical = Vec::new();
    write_canonical(&json!({ "version": version, "tools": tools }), &mut canonical);
    format!("sha256:{}", hex(&Sha256::digest(&canonical)))
}

/// The digest over the canonical JSON of `[[toolId, digest], …]`. Ids and digits need no escapes.
fn digest_list<'a>(pairs: impl Iterator<Item = (&'a str, &'a [u8; 32])>) -> String {
    let mut canonical = String::from("[");
    for (tool_id, digest) in pairs {
        if canonical.len() > 1 {
            canonical.push(',');
        }
        canonical.push_str("[\"");
        canonical.push_str(tool_id);
        canonical.push_str("\",\"");
        push_hex(&mut canonical, digest);
        canonical.push_str("\"]");
    }
    canonical.push(']');
    hex(&Sha256::digest(&canonical))
}

/// The line of one tool.
#[derive(Debug, Clone)]
pub enum Line<'a> {
    Compiled {
        entry: &'a [u8],
        handler_path: &'a str,
    },
    /// These bytes of the artifact that is replaced.
    Copied(Range<u64>),
}

impl Line<'_> {
    fn length(&self) -> io::Result<u64> {
        Ok(match self {
            Line::Compiled { entry, handler_path } => {
                (entry.len() + HANDLER_PATH.len() + serde_json::to_string(handler_path)?.len() + 1) as u64
            }
            Line::Copied(range) => range.end - range.start,
        })
    }
}

/// The artifact could not be written. The old one, if any, is untouched.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`: {source}", path.display())]
pub struct Error {
    pub path: PathBuf,
    pub source: io::Error,
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "free some space, or write elsewhere with `--out FILE`; the old artifact is untouched"
            }
            io::ErrorKind::NotADirectory => "a part of the path is a file: write elsewhere with `--out FILE`",
            _ => "write to another place with `--out FILE`; the old artifact, if any, is untouched",
        }
    }
}

/// A written artifact.
#[derive(Debug)]
pub struct WrittenArtifact {
    /// The bytes of each tool's line.
    pub lines: Vec<Range<u64>>,
    /// Of the written file, even if another process has replaced it since.
    pub metadata: Metadata,
}

/// Writes the artifact to a temporary file and renames it: a reader sees the old one or the new one, never a part.
/// `old` is the open artifact that lines are copied from.
pub fn replace(
    path: &Path,
    header: &Header,
    lines: &[Line<'_>],
    old: Option<&File>,
) -> Result<WrittenArtifact, Error> {
    let failed = |source| Error { path: path.to_owned(), source };
    // A link stays: its target is replaced.
    let path = if path.is_symlink() { path.canonicalize().map_err(failed)? } else { path.to_owned() };
    match fs::metadata(&path) {
        Ok(existing) if existing.is_dir() => return Err(failed(io::Error::other("it is a directory"))),
        Ok(existing) if !existing.is_file() => {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        _ => {}
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    remove_leftovers(&path);
    let number = TEMPORARY_FILES.fetch_add(1, Ordering::Relaxed);
    let temporary = sibling_path(&path, &format!("{}-{number}.tmp", std::process::id()));
    let written = write_new(&temporary, header, lines, old).and_then(|(file, lines)| {
        fs::rename(&temporary, &path)?;
        // Read after the rename, which changes the metadata.
        Ok(WrittenArtifact { lines, metadata: file.metadata()? })
    });
    written.map_err(|source| {
        // Best effort: the error of the write is the one to report.
        let _ = fs::remove_file(&temporary);
        failed(source)
    })
}

/// The artifact in memory.
pub fn to_bytes(header: &Header, lines: &[Line<'_>]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    write_to(&mut out, header, lines, |_, _| Err(io::Error::other("no artifact to copy from")))?;
    Ok(out)
}

/// A hidden file that belongs to the artifact: `.tool_registry.json.<suffix>`.
pub(crate) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map_or_else(|| FILE_NAME.into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// Removes the temporary files of builds that were killed.
fn remove_leftovers(path: &Path) {
    let prefix = sibling_path(path, "");
    let (Some(dir), Some(prefix)) = (prefix.parent(), prefix.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_temporary =
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(".tmp"));
        let age = || SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        if is_temporary && age().is_some_and(|age| age > LEFTOVER_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_new(
    temporary: &Path,
    header: &Header,
    lines: &[Line<'_>],
    old: Option<&File>,
) -> io::Result<(File, Vec<Range<u64>>)> {
    let file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    let (positions, size) = layout(&head(header)?, lines)?;
    reserve(&file, size)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    write_to(&mut out, header, lines, |out, range| {
        let Some(mut old) = old else { return Err(io::Error::other("no artifact to copy from")) };
        // The kernel copies between files without passing the bytes through this process.
        out.flush()?;
        old.seek(SeekFrom::Start(range.start))?;
        let copied = io::copy(&mut old.take(range.end - range.start), out.get_mut())?;
        if copied == range.end - range.start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    })?;
    Ok((out.into_inner().map_err(io::IntoInnerError::into_error)?, positions))
}

/// The bytes of each line, and the size of the artifact.
fn layout(head: &str, lines: &[Line<'_>]) -> io::Result<(Vec<Range<u64>>, u64)> {
    let mut end = head.len() as u64;
    let mut positions = Vec::with_capacity(lines.len());
    for line in lines {
        let gap = if positions.is_empty() { FIRST } else { SEPARATOR };
        let start = end + gap.len() as u64;
        end = start + line.length()?;
        positions.push(start..end);
    }
    let tail = if lines.is_empty() { 0 } else { LAST.len() } + END.len();
    Ok((positions, end + tail as u64))
}

/// Allocates the space of the artifact at once: a full disk is an error before anything is written, and the rename does
/// not wait for the file system to allocate.
#[cfg(target_os = "linux")]
fn reserve(file: &File, size: u64) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size) {
        Err(full @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(full.into()),
        // Not every file system supports it.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// Writes the artifact. `copy` copies a range of the old artifact; ranges that follow each other are copied as one.
fn write_to<W: Write>(
    out: &mut W,
    header: &Header,
    lines: &[Line<'_>],
    mut copy: impl FnMut(&mut W, Range<u64>) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(head(header)?.as_bytes())?;
    let mut pending: Option<Range<u64>> = None;
    for (index, line) in lines.iter().enumerate() {
        if let (Some(pending), Line::Copied(range)) = (&mut pending, line)
            && pending.end + SEPARATOR.len() as u64 == range.start
        {
            // Neighbours in the old artifact too: their separator is copied with them.
            pending.end = range.end;
            continue;
        }
        if let Some(range) = pending.take() {
            copy(out, range)?;
        }
        out.write_all(if index == 0 { FIRST } else { SEPARATOR }.as_bytes())?;
        match line {
            Line::Copied(range) => pending = Some(range.clone()),
            Line::Compiled { entry, handler_path } => {
                out.write_all(entry)?;
                out.write_all(HANDLER_PATH.as_bytes())?;
                serde_json::to_writer(&mut *out, handler_path)?;
                out.write_all(b"}")?;
            }
        }
    }
    if let Some(range) = pending {
        copy(out, range)?;
    }
    out.write_all(if lines.is_empty() { "" } else { LAST }.as_bytes())?;
    out.write_all(END.as_bytes())
}

/// The artifact up to its first tool: the header without its closing brace.
fn head(header: &Header) -> io::Result<String> {
    let header = serde_json::to_string_pretty(header)?;
    Ok(format!("{},\n  {TOOLS}", header.trim_end_matches(['\n', '}'])))
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
