use super::*;

fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let pattern = Pattern::new(pattern);
    for text in matching {
        assert!(pattern.matches(text), "{} {text:?}", pattern.text);
    }
    for text in others {
        assert!(!pattern.matches(text), "{} {text:?}", pattern.text);
    }
}

#[test]
fn anchors_are_those_of_ecmascript() {
    check("^abc$", &["abc"], &["abc\n", "xabc"]);
    check("^abc", &["abcd"], &["xabc"]);
    check("abc$", &["xabc"], &["abcx"]);
    check("abc", &["xabcx"], &["ab"]);
    check("", &["", "x"], &[]);
}

#[test]
fn classes_are_those_of_ecmascript() {
    check("^[[]$", &["["], &["]", "[["]);
    check("^[^]$", &["\n", "x"], &[""]);
    check("x[]", &[], &["x", "x[]"]);
    check(r"^\[\]$", &["[]"], &["x"]);
    check(r"^[\]x]$", &["]", "x"], &["\\"]);
    check(r"^\d$", &["1"], &["\u{665}"]);
    check(r"^\w$", &["a"], &["\u{e9}"]);
    check(r"^\s$", &["\u{feff}", "\u{a0}"], &["x"]);
    check("^.$", &["\u{1f600}"], &["\n", "ab"]);
    check("a$", &["a"], &["a\n"]);
}
