//! Checks one tool directory: its compiled form and all diagnostics come out. Nothing is run or written.

mod allow;
mod capability_uses;
mod example_check;
mod files;
mod schema_file;
mod template_texts;

use std::path::Path;

pub(crate) use allow::WARNINGS;
pub(crate) use files::TOOL_FILES;

use crate::compiled_tool::CompiledTool;
use crate::diagnostic::{Diagnostic, DiagnosticDraft};
use crate::docs::{check_doc, check_summary};
use crate::fields::check_text;
use crate::fingerprint::Fingerprint;
use crate::formats::Formats;
use crate::shared::Shared;
use crate::source::ToolDir;

/// The result of checking one tool.
#[derive(Debug)]
pub struct CheckedTool {
    /// `None` if any diagnostic is an error.
    pub tool: Option<CompiledTool>,
    pub diagnostics: Vec<Diagnostic>,
    pub fingerprint: Fingerprint,
}

/// The inputs that all tools of one build share.
#[derive(Debug)]
pub struct Context<'a> {
    /// The tools directory with all links resolved.
    pub root: &'a Path,
    pub shared: &'a Shared,
    pub formats: &'a Formats,
}

/// Checks one tool directory in full.
pub fn check_tool(dir: &ToolDir, context: &Context<'_>) -> CheckedTool {
    let mut drafts = Vec::new();
    let files = files::read_files(dir, context.root, &mut drafts);
    let schema = files
        .schema
        .as_deref()
        .and_then(|text| schema_file::check_schema_file(&dir.name, text, context, &mut drafts));
    drafts.extend(files.texts().filter_map(|(file, text)| template_texts::check(file, text)));
    if let Some(summary) = &files.summary {
        drafts.extend(check_summary(summary));
        check_text("doc_summary.md", summary, &mut drafts);
    }
    if let Some(doc) = &files.doc {
        let report = check_doc(doc);
        drafts.extend(report.diagnostics);
        check_text("doc.md", doc, &mut drafts);
        let validator = schema
            .as_ref()
            .and_then(|schema| Some((schema.validator.as_ref()?, schema.members.get("parameters")?)));
        example_check::check_examples(&report.examples, validator, &mut drafts);
    }
    if let Some(schema) = &schema {
        capability_uses::check(&schema.members, &files.uses, &mut drafts);
        allow::apply(&schema.members, &mut drafts);
    }
    let is_valid = !drafts.iter().any(DiagnosticDraft::is_error);
    let tool = match (schema, &files.summary, &files.doc, &files.handler) {
        (Some(schema), Some(summary), Some(doc), Some(handler)) if is_valid => {
            Some(CompiledTool::new(schema.members, summary.trim(), doc, handler))
        }
        _ => None,
    };
    let diagnostics = drafts.into_iter().map(|draft| files.locate(&dir.name, draft, context.shared));
    let mut diagnostics: Vec<Diagnostic> = diagnostics.collect();
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    CheckedTool { tool, diagnostics, fingerprint: files.fingerprint }
}
