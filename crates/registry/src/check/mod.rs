//! One tool directory in, its compiled form and all findings out. Nothing is run, nothing is written.

mod examples;
mod expression;
mod fields;
mod files;
mod hidden;
mod names;
mod parameters;
mod schema_file;

use std::path::Path;

use crate::compiled::CompiledTool;
use crate::diagnostic::{Diagnostic, Finding, Severity};
use crate::fingerprint::{Fingerprint, Root};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::source::ToolDir;

/// What the check of one tool gives.
#[derive(Debug)]
pub struct Checked {
    /// `None` when any finding is an error.
    pub tool: Option<CompiledTool>,
    pub diagnostics: Vec<Diagnostic>,
    pub fingerprint: Fingerprint,
}

/// What all tools of one build share.
#[derive(Debug)]
pub struct Context<'a> {
    /// The tools directory with all links resolved.
    pub root: &'a Path,
    /// The same, open.
    pub tools: &'a Root,
    pub shared: &'a Shared,
}

/// The fields of `schema.json`, in the order in which the artifact has them.
pub fn field_names() -> impl Iterator<Item = &'static str> {
    fields::FIELDS.iter().map(|field| field.name)
}

/// Checks one tool directory in full.
pub fn check_tool(dir: &ToolDir, context: &Context<'_>) -> Checked {
    let mut findings = Findings::default();
    let files = files::read_files(dir, context.root, &mut findings);
    let schema = files
        .schema
        .as_deref()
        .and_then(|text| schema_file::check_schema_file(&dir.name, text, context.shared, &mut findings));
    if let Some(summary) = &files.summary {
        findings.extend_file("doc_summary.md", crate::docs::check_summary(summary));
        hidden::check_text("doc_summary.md", summary, &mut findings);
    }
    if let Some(doc) = &files.doc {
        let report = crate::docs::check_doc(doc);
        findings.extend_file("doc.md", report.problems);
        hidden::check_text("doc.md", doc, &mut findings);
        let validator = schema
            .as_ref()
            .and_then(|schema| Some((schema.validator.as_ref()?, schema.members.get("parameters")?)));
        examples::check_examples(&report.examples, validator, &mut findings);
    }
    let is_sound = findings.errors() == 0;
    let tool = match (schema, &files.summary, &files.doc, &files.handler) {
        (Some(schema), Some(summary), Some(doc), Some(handler)) if is_sound => {
            Some(CompiledTool::new(&schema.members, summary.trim(), doc, handler))
        }
        _ => None,
    };
    let diagnostics = findings.0.into_iter().map(|finding| files.locate(&dir.name, finding, context.shared));
    let mut diagnostics: Vec<Diagnostic> = diagnostics.collect();
    diagnostics.sort_by(|a, b| a.place().cmp(&b.place()));
    Checked { tool, diagnostics, fingerprint: files.fingerprint }
}

/// Findings as they come in.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn extend_file(&mut self, file: &'static str, problems: Vec<Problem>) {
        self.0.extend(problems.into_iter().map(|problem| problem.into_finding(file)));
    }

    fn push(&mut self, finding: Finding) -> Reported<'_> {
        self.0.push(finding);
        let last = self.0.len() - 1;
        Reported(&mut self.0[last])
    }

    fn errors(&self) -> usize {
        self.0.iter().filter(|finding| finding.severity == Severity::Error).count()
    }
}

/// The finding just reported, to be refined.
struct Reported<'a>(&'a mut Finding);

impl Reported<'_> {
    fn help(self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    fn at_key(self) -> Self {
        if let crate::diagnostic::Place::Json { part, .. } = &mut self.0.place {
            *part = toolwright_schema::pointer::Part::Key;
        }
        self
    }

    fn warning(self) -> Self {
        self.0.severity = Severity::Warning;
        self
    }
}
