//! Regular expressions: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn bad_patterns_are_explained() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "string", "pattern": "("}, "b": {"type": "string", "pattern": "(?i)x"}, "c": {"type": "string", "pattern": "^a\\Z"}, "d": {"type": "string", "pattern": "(?P<n>a)"}, "e": {"type": "string", "pattern": "\\-"}, "f": {"type": "string", "pattern": "(?i:a)"}}}"#,
        &[
            r"schema-bad-pattern /properties/a/pattern Value: pattern `(` is not a regular expression: Unterminated capturing group [the syntax is ECMAScript with the `u` flag: escape only `^$\.*+?()[]{}|/`]",
            "schema-bad-pattern /properties/b/pattern Value: pattern `(?i)x` is not a regular expression: Unknown modifiers [ECMAScript has no inline flags: write `[Aa]` for either case]",
            r"schema-bad-pattern /properties/c/pattern Value: pattern `^a\Z` is not a regular expression: Could not parse the entire pattern [use `^` and `$` for the start and the end]",
            "schema-bad-pattern /properties/d/pattern Value: pattern `(?P<n>a)` is not a regular expression: Unknown modifiers [a named group is `(?<name>…)`]",
            r"schema-bad-pattern /properties/e/pattern Value: pattern `\-` is not a regular expression: Could not parse the entire pattern [the syntax is ECMAScript with the `u` flag: escape only `^$\.*+?()[]{}|/`]",
            r"schema-bad-pattern /properties/f/pattern Value: pattern `(?i:a)` is not a regular expression: Invalid group [the syntax is ECMAScript with the `u` flag: escape only `^$\.*+?()[]{}|/`]",
        ],
    );
}

#[test]
fn patterns_nested_too_deeply_are_refused_before_they_are_parsed() {
    let pattern = "(".repeat(100_000);
    assert!(matches!(crate::pattern::check(&pattern), Err(crate::pattern::PatternError::TooLarge)));
}

#[test]
fn repetitions_are_expanded_and_open_ones_count_once() {
    for (pattern, fits) in [
        ("(a{1000}){1000}", false),
        ("(a{100}){1000}", true),
        ("(a{100}b){1000}", false),
        ("((a+)+)+", true),
        ("(a{1000,}){1000,}", false),
        ("a{99999}", true),
        ("a{18446744073709551615}", false),
    ] {
        assert_eq!(crate::pattern::check(pattern).is_ok(), fits, "{pattern}");
    }
}
