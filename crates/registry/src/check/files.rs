//! Reads the four files of a tool once, checks the handler, and stores the texts that diagnostics point into.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use toolwright_contract::suggest::nearest;

use crate::compiled_tool::Handler;
use crate::diagnostic::{Diagnostic, DiagnosticDraft, Location};
use crate::fingerprint::Fingerprint;
use crate::handler::{ContextUse, Siblings, check_handler};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::source::{ToolDir, is_kebab};

/// The files of every tool.
pub(crate) const TOOL_FILES: [&str; 4] = ["schema.json", "doc_summary.md", "doc.md", "handler.js"];

/// Reserved for another engine; beside `handler.js` it would be a second handler.
const WASM_HANDLER: &str = "handler.wasm";
/// Common wrong file names. Beside `handler.js` they may be its source.
const UNSUPPORTED_HANDLERS: &[&str] = &["handler.ts", "handler.mjs", "handler.cjs", "handler.py"];

/// The texts of a tool's files, as far as they could be read.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub schema: Option<String>,
    pub summary: Option<String>,
    pub doc: Option<String>,
    /// `None` if the handler has errors.
    pub handler: Option<Handler>,
    /// The functions of `context` that the handler uses.
    pub uses: Vec<ContextUse>,
    pub fingerprint: Fingerprint,
    /// The handler and its modules by path, for diagnostics.
    sources: BTreeMap<String, String>,
}

impl Files {
    /// Computes the position of a diagnostic.
    pub fn locate(&self, tool: &str, draft: DiagnosticDraft, shared: &Shared) -> Diagnostic {
        let text = match draft.file.as_ref() {
            "schema.json" => self.schema.as_deref(),
            "doc_summary.md" => self.summary.as_deref(),
            "doc.md" => self.doc.as_deref(),
            other => match other.strip_prefix("../_shared/") {
                Some(name) => shared.text(name),
                None => self.sources.get(other).map(String::as_str),
            },
        };
        draft.locate(tool, text)
    }
}

impl Files {
    /// The four files, as far as they could be read.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let handler = self.sources.get("handler.js");
        let texts = [&self.schema, &self.summary, &self.doc].map(Option::as_deref);
        let texts = texts.into_iter().chain([handler.map(String::as_str)]);
        TOOL_FILES.into_iter().zip(texts).filter_map(|(name, text)| Some((name, text?)))
    }
}

/// Reads the files, and checks all that does not depend on the meaning of `schema.json` and the docs.
pub(super) fn read_files(dir: &ToolDir, root: &Path, diagnostics: &mut Vec<DiagnosticDraft>) -> Files {
    check_name(dir, diagnostics);
    let mut files = Files::default();
    let mut reader = match Reader::open(root, dir) {
        Ok(reader) => reader,
        Err(draft) => {
            diagnostics.push(*draft);
            return files;
        }
    };
    files.schema = read(&mut reader, "schema.json", diagnostics);
    files.summary = read(&mut reader, "doc_summary.md", diagnostics);
    files.doc = read(&mut reader, "doc.md", diagnostics);
    if let Some(source) = read_handler_source(&mut reader, diagnostics) {
        read_handler(&mut reader, source, &mut files, diagnostics);
    }
    files.fingerprint = reader.fingerprint;
    files
}

/// The directory's name becomes the tool's id, so it must be kebab-case.
fn check_name(dir: &ToolDir, diagnostics: &mut Vec<DiagnosticDraft>) {
    let name = dir.name.as_str();
    if !is_kebab(name) {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let kebab = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
        let message = format!("the directory name `{name}` is not kebab-case");
        diagnostics
            .push_mut(DiagnosticDraft::error("dir-name", "", Location::File, message))
            .help(format!("rename it to `{kebab}`, or begin it with `_` if it is not a tool"));
    }
}

fn read(
    reader: &mut Reader<'_>,
    name: &'static str,
    diagnostics: &mut Vec<DiagnosticDraft>,
) -> Option<String> {
    match reader.read(name) {
        Ok(text) => Some(text),
        Err(mut draft) => {
            if draft.code == "file-missing" {
                draft.help(match similar_file(reader, name) {
                    Some(similar) => format!("rename `{similar}` to `{name}`"),
                    None => "a tool has schema.json, doc_summary.md, doc.md and handler.js".to_owned(),
                });
            }
            diagnostics.push(*draft);
            None
        }
    }
}

/// A file of the directory that is probably a misspelt `wanted`.
fn similar_file(reader: &Reader<'_>, wanted: &str) -> Option<String> {
    let names = reader.names();
    let others = names.iter().map(String::as_str).filter(|name| !TOOL_FILES.contains(name));
    nearest(wanted, others).map(str::to_owned)
}

fn read_handler_source(reader: &mut Reader<'_>, diagnostics: &mut Vec<DiagnosticDraft>) -> Option<String> {
    let has_wasm = reader.has(WASM_HANDLER);
    let source = read(reader, "handler.js", diagnostics);
    let is_missing =
        diagnostics.last().is_some_and(|last| last.code == "file-missing" && last.file == "handler.js");
    let unsupported =
        UNSUPPORTED_HANDLERS.iter().copied().filter(|_| is_missing).find(|name| reader.has(name));
    let (file, message) = match (has_wasm, unsupported) {
        (true, _) if !is_missing => (
            WASM_HANDLER,
            format!("both `handler.js` and `{WASM_HANDLER}` exist: a tool has exactly one handler"),
        ),
        (true, _) => (WASM_HANDLER, format!("`{WASM_HANDLER}` is not a handler that Toolwright runs")),
        (false, Some(name)) => (name, format!("`{name}` is not a handler that Toolwright runs")),
        (false, None) => return source,
    };
    if is_missing {
        diagnostics.pop();
    }
    diagnostics
        .push_mut(DiagnosticDraft::error("handler-kind", file, Location::File, message))
        .help("keep one `handler.js`, a standard ES module that exports `execute`");
    source
}

fn read_handler(
    reader: &mut Reader<'_>,
    source: String,
    files: &mut Files,
    diagnostics: &mut Vec<DiagnosticDraft>,
) {
    let mut report = check_handler(&source, &DirSiblings(RefCell::new(reader)));
    if !report.diagnostics.iter().any(DiagnosticDraft::is_error) {
        files.handler = Some(Handler::new(&source, &report.modules));
    }
    diagnostics.append(&mut report.diagnostics);
    files.uses = report.uses;
    files.sources.insert("handler.js".to_owned(), source);
    files.sources.extend(report.modules);
}

/// The modules that a handler imports, read from its own directory under the same rules as the handler.
struct DirSiblings<'a, 'b>(RefCell<&'a mut Reader<'b>>);

impl Siblings for DirSiblings<'_, '_> {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.borrow_mut().read(path).map_err(|draft| draft.message)
    }
}
