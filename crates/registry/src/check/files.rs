//! The four files of a tool, read once, and kept for pointing into them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Findings;
use crate::compiled::Handler;
use crate::diagnostic::{Diagnostic, Finding, Place};
use crate::fingerprint::Fingerprint;
use crate::handler::{Siblings, check_handler};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::source::{ToolDir, is_kebab};
use toolwright_contract::suggest::nearest;

/// The handler of an engine that is still to come; beside `handler.js` it would be a second one.
const OTHER_HANDLER: &str = "handler.wasm";
/// What people try first. Beside `handler.js` they may be what it was made from.
const FOREIGN_HANDLERS: &[&str] = &["handler.ts", "handler.mjs", "handler.cjs", "handler.py"];

/// The texts of a tool's files, as far as they could be read.
#[derive(Debug)]
pub(super) struct Files {
    pub schema: Option<String>,
    pub summary: Option<String>,
    pub doc: Option<String>,
    pub handler: Option<Handler>,
    pub fingerprint: Fingerprint,
    /// A handler that is not sound has no `handler`, but findings still point into it.
    sources: BTreeMap<String, String>,
}

impl Files {
    /// Works out where a finding is.
    pub fn locate(&self, tool: &str, finding: Finding, shared: &Shared) -> Diagnostic {
        let text = match finding.file.as_ref() {
            "schema.json" => self.schema.as_deref(),
            "doc_summary.md" => self.summary.as_deref(),
            "doc.md" => self.doc.as_deref(),
            other => match other.strip_prefix("../_shared/") {
                Some(name) => shared.text(name),
                None => self.sources.get(other).map(String::as_str),
            },
        };
        finding.locate(tool, text)
    }
}

/// Reads and checks everything about the files that does not need their meaning, handler included.
pub(super) fn read_files(dir: &ToolDir, root: &std::path::Path, findings: &mut Findings) -> Files {
    check_name(dir, findings);
    let mut files = Files {
        schema: None,
        summary: None,
        doc: None,
        handler: None,
        fingerprint: Fingerprint::new(),
        sources: BTreeMap::new(),
    };
    let mut reader = match Reader::open(root, dir) {
        Ok(reader) => reader,
        Err(finding) => {
            findings.push(*finding);
            return files;
        }
    };
    files.schema = read(&mut reader, "schema.json", findings);
    files.summary = read(&mut reader, "doc_summary.md", findings);
    files.doc = read(&mut reader, "doc.md", findings);
    if let Some(source) = read_handler_source(&mut reader, findings) {
        read_handler(&mut reader, source, &mut files, findings);
    }
    files.fingerprint = reader.fingerprint;
    files
}

/// `tools/<kebab-name>/`: the name becomes the tool's id, so its form matters.
fn check_name(dir: &ToolDir, findings: &mut Findings) {
    let name = dir.name.as_str();
    if !is_kebab(name) {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let kebab = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
        let message = format!("the directory name `{name}` is not kebab-case");
        findings
            .push(Finding::error("dir-name", "", Place::File, message))
            .help(format!("rename it to `{kebab}`, or begin it with `_` if it is not a tool"));
    }
}

fn read(reader: &mut Reader<'_>, name: &'static str, findings: &mut Findings) -> Option<String> {
    match reader.read(name) {
        Ok(text) => Some(text),
        Err(finding) => {
            let missing = finding.code == "file-missing";
            let reported = findings.push(*finding);
            if missing && let Some(near) = near_miss(reader, name) {
                reported.help(format!("rename `{near}` to `{name}`"));
            } else if missing {
                reported.help("a tool has schema.json, doc_summary.md, doc.md and handler.js");
            }
            None
        }
    }
}

/// A file that is there under a name that somebody may have meant for `wanted`.
fn near_miss(reader: &Reader<'_>, wanted: &str) -> Option<String> {
    let taken = ["schema.json", "doc_summary.md", "doc.md", "handler.js"];
    let names = reader.names();
    nearest(wanted, names.iter().map(String::as_str).filter(|name| !taken.contains(name))).map(str::to_owned)
}

fn read_handler_source(reader: &mut Reader<'_>, findings: &mut Findings) -> Option<String> {
    let has_other = reader.has(OTHER_HANDLER);
    let source = read(reader, "handler.js", findings);
    let is_missing =
        findings.0.last().is_some_and(|last| last.code == "file-missing" && last.file == "handler.js");
    let foreign = FOREIGN_HANDLERS.iter().copied().filter(|_| is_missing).find(|name| reader.has(name));
    let (extra, message) = match (has_other, foreign) {
        (true, _) if !is_missing => (
            OTHER_HANDLER,
            format!("both `handler.js` and `{OTHER_HANDLER}` are there: a tool has exactly one handler"),
        ),
        (true, _) => (OTHER_HANDLER, format!("`{OTHER_HANDLER}` is not a handler that Toolwright runs")),
        (false, Some(foreign)) => (foreign, format!("`{foreign}` is not a handler that Toolwright runs")),
        (false, None) => return source,
    };
    if is_missing {
        findings.0.pop();
    }
    findings
        .push(Finding::error("handler-kind", extra, Place::File, message))
        .help("keep one `handler.js`, a standard ES module that exports `execute`");
    source
}

fn read_handler(reader: &mut Reader<'_>, source: String, files: &mut Files, findings: &mut Findings) {
    let siblings = DirSiblings(std::cell::RefCell::new(reader));
    let report = check_handler(&source, &siblings);
    let is_sound = report.problems.iter().all(|found| !found.problem.is_error());
    for found in report.problems {
        findings.push(found.problem.into_finding(Cow::Owned(found.file)));
    }
    if is_sound {
        files.handler = Some(Handler::new(&source, &report.modules));
    }
    files.sources.insert("handler.js".to_owned(), source);
    files.sources.extend(report.modules);
}

/// What a handler imports, read from its own directory under the same rules as the handler itself.
struct DirSiblings<'a, 'b>(std::cell::RefCell<&'a mut Reader<'b>>);

impl Siblings for DirSiblings<'_, '_> {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.borrow_mut().read(path).map_err(|finding| finding.message)
    }
}
