//! Decides, as Ajv 8 (2020 build, `strict: true`, with ajv-formats) would, whether a JSON Schema
//! compiles, and says what is wrong with it and where. Knows schemas only: no files, no tools.

mod applicator;
mod array;
mod cost;
mod defined;
mod evaluated;
mod format;
mod ids;
mod keyword;
mod meta;
mod object;
mod pattern;
mod problem;
pub(crate) mod reference;
mod refs;
#[cfg(test)]
mod sample;
mod suggest;
mod types;
pub(crate) mod uri;
mod walk;

pub use format::known_formats;
pub use problem::{Part, Problem};

use problem::{Path, Report};
use refs::Resolver;
use serde_json::Value;
use walk::Linter;

/// All problems of one schema, at most a hundred; none: Ajv would compile it, and checking a value
/// against it costs a bounded amount of work.
#[must_use]
pub fn lint(schema: &Value) -> Vec<Problem> {
    let mut report = Report::default();
    let contents = meta::check(schema, &mut report);
    dialect(schema, &mut report);
    let mut refs = Resolver::new(schema);
    if refs::is_meta_schema(refs.root_base()) {
        let message = "this `$id` belongs to a meta-schema".to_owned();
        report.add("schema-ambiguous-id", &Path::Root.key("$id"), Part::Value, message, None);
    }
    if contents.ids {
        let ids = ids::collect(schema, refs.root_base(), &mut report);
        refs = refs.with_ids(ids);
    }
    let mut linter = Linter::new(report, refs);
    linter.run(schema);
    let Linter { mut report, targets, .. } = linter;
    if contents.refs && report.is_empty() {
        cost::check(schema, &targets, &contents.dynamic_anchors, &mut report);
    }
    report.into_problems()
}

/// `$schema` at the root must name a meta-schema that is built in.
fn dialect(schema: &Value, report: &mut Report) {
    let Some(Value::String(name)) = schema.get("$schema") else {
        return;
    };
    let known = matches!(
        uri::normal_id(name),
        "" | "https://json-schema.org/draft/2020-12/schema" | "http://json-schema.org/schema"
    );
    if !known {
        let message = format!("unknown dialect `{name}`");
        let help = Some("remove `$schema`, or use `https://json-schema.org/draft/2020-12/schema`".to_owned());
        report.add("schema-unknown-dialect", &Path::Root.key("$schema"), Part::Value, message, help);
    }
}

#[cfg(test)]
mod corpus_tests;
