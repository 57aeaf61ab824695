//! `tool_registry.json`: how it is laid out, versioned, and replaced in one step.
//!
//! The header's members stand on lines of their own, then each tool on one line, so that a build can take over
//! the lines of unchanged tools, and a person can search it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::compiled::{Digests, hex, push_hex};
use crate::json::write_canonical;

/// The layout described here.
pub const FORMAT_VERSION: u64 = 1;
/// The artifact's name beside the tools.
pub const FILE_NAME: &str = "tool_registry.json";
/// Between the last thing that the content digest covers and the handler's path.
pub(crate) const HANDLER_PATH: &str = ",\"handlerPath\":";

/// Where the list of tools begins.
pub(crate) const TOOLS: &str = "\"tools\": [";

/// How the artifact ends.
pub(crate) const END: &str = "]\n}\n";

const FIRST: &str = "\n    ";
const SEPARATOR: &str = ",\n    ";
/// Tells the temporary files of one process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

const LEFTOVER_AGE: Duration = Duration::from_secs(600);

/// Everything before the tools.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    pub version: String,
    pub content_digest: String,
    pub git_commit: Option<String>,
    /// ISO 8601, UTC.
    pub build_timestamp: String,
}

/// `1.0.` and eight digits of the digest over every tool's declaration.
pub fn version<'a>(tools: impl Iterator<Item = &'a Digests>) -> String {
    let digest = digest_list(tools.map(|tool| (tool.tool_id.as_str(), &tool.declaration)));
    format!("1.0.{}", &digest[..8])
}

/// The digest over the version and every tool's content, handlers included.
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

/// Over the canonical JSON of `[[toolId, digest], …]`. Ids and digits need no escapes, so it is written as it is.
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

/// One tool's line: new, or taken over from the artifact that is being replaced.
#[derive(Debug, Clone, Copy)]
pub enum Line<'a> {
    Fresh { entry: &'a [u8], handler_path: &'a str },
    Kept { start: u64, end: u64 },
}

/// An artifact that could not be written. Whatever was there before is still there.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct Error {
    pub path: PathBuf,
    pub source: io::Error,
}

impl Error {
    /// A way out, for the person at the terminal.
    pub fn help(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "free some space, or name another place with `--out FILE`; the old artifact is untouched"
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                "create the directory first, or name another place with `--out FILE`"
            }
            _ => "name a place that can be written with `--out FILE`; the old artifact, if any, is untouched",
        }
    }
}

/// A written artifact.
#[derive(Debug)]
pub struct Written {
    /// Where each tool's line stands.
    pub places: Vec<Range<u64>>,
    /// Of the very file that was written, whatever stands in its place by now.
    pub metadata: Metadata,
}

/// Writes the artifact beside its final place and renames it: a reader sees the old one or the new one.
/// Lines are taken over from `old`, which stays the file it was when its content was known.
pub fn replace(
    path: &Path,
    header: &Header,
    lines: &[Line<'_>],
    old: Option<&File>,
) -> Result<Written, Error> {
    let failed = |source| Error { path: path.to_owned(), source };
    // Through a link to what it names: the link itself is somebody's choice.
    let path = if path.is_symlink() { path.canonicalize().map_err(failed)? } else { path.to_owned() };
    match fs::metadata(&path) {
        Ok(there) if there.is_dir() => return Err(failed(io::Error::other("it is a directory"))),
        Ok(there) if !there.is_file() => return Err(failed(io::Error::other("it is not a regular file"))),
        _ => {}
    }
    remove_leftovers(&path);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = beside(&path, &format!("{}-{number}.tmp", std::process::id()));
    let written = write_new(&temporary, header, lines, old).and_then(|(file, places)| {
        fs::rename(&temporary, &path)?;
        // Asked after the rename, which is a change too.
        Ok(Written { places, metadata: file.metadata()? })
    });
    written.map_err(|source| {
        // Best effort: what could not be written is of no use to anybody.
        let _ = fs::remove_file(&temporary);
        failed(source)
    })
}

/// The artifact in memory.
pub fn to_bytes(header: &Header, lines: &[Line<'_>]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    write_to(&mut out, header, lines, |_, _| Err(io::Error::other("nothing to take over from")))?;
    Ok(out)
}

/// A hidden file that belongs to the artifact: `.tool_registry.json.<suffix>`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map_or_else(|| FILE_NAME.into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// A build that was killed leaves its temporary file; nobody else would ever remove it.
fn remove_leftovers(path: &Path) {
    let prefix = beside(path, "");
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
    reserve(&file, size(header, lines)?)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let places = write_to(&mut out, header, lines, |out, run| {
        let Some(mut old) = old else { return Err(io::Error::other("nothing to take over from")) };
        // Between files the kernel copies without bringing the bytes here.
        out.flush()?;
        old.seek(SeekFrom::Start(run.start))?;
        let copied = io::copy(&mut old.take(run.end - run.start), out.get_mut())?;
        if copied == run.end - run.start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    })?;
    Ok((out.into_inner().map_err(io::IntoInnerError::into_error)?, places))
}

/// How many bytes the artifact will have.
fn size(header: &Header, lines: &[Line<'_>]) -> io::Result<u64> {
    let mut counter = Counter(0);
    write_to(&mut counter, header, lines, |counter, run| {
        counter.0 += run.end - run.start;
        Ok(())
    })?;
    Ok(counter.0)
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the space on the disk at once: a full disk is noticed before anything is written, and the rename need not
/// wait until the file system has found room for what was written.
#[cfg(target_os = "linux")]
fn reserve(file: &File, size: u64) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size) {
        Err(full @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(full.into()),
        // Not every file system can; then it goes as it goes.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

fn write_to<W: Write>(
    out: &mut W,
    header: &Header,
    lines: &[Line<'_>],
    mut take_over: impl FnMut(&mut W, Range<u64>) -> io::Result<()>,
) -> io::Result<Vec<Range<u64>>> {
    let head = head(header);
    out.write_all(head.as_bytes())?;
    let mut at = head.len() as u64;
    let mut places = Vec::with_capacity(lines.len());
    let mut run: Option<Range<u64>> = None;
    for (index, line) in lines.iter().enumerate() {
        let gap = if index == 0 { FIRST } else { SEPARATOR };
        let start = at + gap.len() as u64;
        let length = match line {
            Line::Kept { start, end } => match &mut run {
                // Neighbours stay neighbours: their separator is taken over with them.
                Some(run) if run.end + SEPARATOR.len() as u64 == *start => {
                    run.end = *end;
                    end - start
                }
                _ => {
                    finish_run(out, &mut run, &mut take_over)?;
                    out.write_all(gap.as_bytes())?;
                    run = Some(*start..*end);
                    end - start
                }
            },
            Line::Fresh { entry, handler_path } => {
                finish_run(out, &mut run, &mut take_over)?;
                out.write_all(gap.as_bytes())?;
                write_fresh(out, entry, handler_path)?
            }
        };
        at = start + length;
        places.push(start..at);
    }
    finish_run(out, &mut run, &mut take_over)?;
    out.write_all(if lines.is_empty() { b"" } else { b"\n  " })?;
    out.write_all(END.as_bytes())?;
    Ok(places)
}

fn finish_run<W: Write>(
    out: &mut W,
    run: &mut Option<Range<u64>>,
    take_over: &mut impl FnMut(&mut W, Range<u64>) -> io::Result<()>,
) -> io::Result<()> {
    run.take().map_or(Ok(()), |run| take_over(out, run))
}

fn write_fresh(out: &mut impl Write, entry: &[u8], handler_path: &str) -> io::Result<u64> {
    let path = serde_json::to_string(handler_path)?;
    out.write_all(entry)?;
    out.write_all(HANDLER_PATH.as_bytes())?;
    out.write_all(path.as_bytes())?;
    out.write_all(b"}")?;
    Ok((entry.len() + HANDLER_PATH.len() + path.len() + 1) as u64)
}

fn head(header: &Header) -> String {
    let text = |text: &str| Value::String(text.to_owned()).to_string();
    format!(
        "{{\n  \"formatVersion\": {FORMAT_VERSION},\n  \"version\": {},\n  \"contentDigest\": {},\n  \"gitCommit\": {},\n  \"buildTimestamp\": {},\n  {TOOLS}",
        text(&header.version),
        text(&header.content_digest),
        header.git_commit.as_deref().map_or_else(|| "null".to_owned(), text),
        text(&header.build_timestamp),
    )
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
