//! Regular expressions in schemas: what is reported about them.

use super::linter::Linter;
use super::problem::Problem;
use crate::pattern::{self, PatternError};
use crate::pointer::{Location, Part};

impl Linter<'_> {
    /// Reports what is wrong with a pattern; `true` when nothing is.
    pub(super) fn pattern(&mut self, pattern: &str, at: &Location<'_>, part: Part) -> bool {
        let problem = match pattern::check(pattern) {
            Ok(()) => return true,
            Err(PatternError::Syntax(reason)) => {
                let reason = reason.trim_start_matches("Invalid regular expression: ").trim_end_matches('.');
                let message = format!("pattern `{pattern}` is not a regular expression: {reason}");
                Problem::at_value("schema-bad-pattern", at, message).help(syntax_help(pattern))
            }
            Err(PatternError::TooLarge) => {
                let start: String = pattern.chars().take(40).collect();
                let message = format!("pattern `{start}` is too large once its repetitions are expanded");
                let help = "use smaller repetition counts, or `maxLength` for the length";
                Problem::at_value("schema-pattern-too-costly", at, message).help(help)
            }
        };
        self.report.add(Problem { part, ..problem });
        false
    }
}

fn syntax_help(pattern: &str) -> &'static str {
    if pattern.starts_with("(?i)") {
        "ECMAScript has no inline flags: write `[Aa]` for either case"
    } else if pattern.contains(r"\A") || pattern.contains(r"\Z") || pattern.contains(r"\z") {
        "use `^` and `$` for the start and the end"
    } else if pattern.contains("(?P<") {
        "a named group is `(?<name>…)`"
    } else {
        "the syntax is ECMAScript with the `u` flag: escape only `^$\\.*+?()[]{}|/`"
    }
}

#[cfg(test)]
#[path = "lint_pattern_tests.rs"]
mod tests;
