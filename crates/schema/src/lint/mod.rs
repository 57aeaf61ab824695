//! The linter: reports why Ajv 8 (2020 build, `strict: true`, with ajv-formats) would not compile a schema, and refuses
//! schemas whose validation may take unbounded work.

mod cost;
mod lint_array;
mod lint_format;
mod lint_help;
mod lint_logic;
mod lint_object;
mod lint_pattern;
pub(crate) mod lint_reference;
mod linter;
mod meta_schema;
mod problem;
mod ref_resolver;
mod scope;
mod strict_types;
#[cfg(test)]
mod support;

pub use problem::Problem;

use linter::Linter;
use problem::Report;
use ref_resolver::RefResolver;
use serde_json::Value;

use crate::pointer::Location;
use crate::reference::is_meta_schema;
use crate::uri;

/// All problems of one schema, at most a hundred. Without any, Ajv would compile the schema, and validation takes a
/// bounded amount of work.
#[must_use]
pub fn lint(schema: &Value) -> Vec<Problem> {
    let mut report = Report::default();
    let contents = meta_schema::check(schema, &mut report);
    dialect(schema, &mut report);
    let mut resolver = RefResolver::new(schema);
    if is_meta_schema(resolver.root_base()) {
        let message = format!("`$id` `{}` belongs to a meta-schema", resolver.root_base());
        report.add(Problem::at_value("schema-ambiguous-id", &Location::Root.key("$id"), message));
    }
    if contents.ids {
        resolver.collect_ids(&mut report);
    }
    let mut linter = Linter::new(report, resolver);
    linter.run(schema);
    let Linter { mut report, targets, .. } = linter;
    if contents.refs && report.is_empty() {
        cost::check(schema, &targets, &contents.dynamic_anchors, &mut report);
    }
    report.problems
}

/// `$schema` at the root must name a meta-schema that is built in.
fn dialect(schema: &Value, report: &mut Report) {
    let Some(Value::String(name)) = schema.get("$schema") else { return };
    let known = matches!(
        uri::normalize_id(name),
        "" | "https://json-schema.org/draft/2020-12/schema" | "http://json-schema.org/schema"
    );
    if !known {
        let message = format!("`$schema` names an unknown dialect: `{name}`");
        let problem = Problem::at_value("schema-unknown-dialect", &Location::Root.key("$schema"), message);
        let help = "remove `$schema`, or use `https://json-schema.org/draft/2020-12/schema`";
        report.add(problem.help(help));
    }
}
