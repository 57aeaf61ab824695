use super::*;
use crate::pattern::build;

/// The fast path and the engine must agree; `is_sequence`: whether the fast path handles the pattern.
#[track_caller]
fn check(pattern: &str, is_sequence: bool) {
    let sequence = ClassSequence::parse(pattern);
    assert_eq!(sequence.is_some(), is_sequence, "{pattern}");
    let (Some(sequence), Some(regex)) = (sequence, build(pattern)) else { return };
    // All short texts of characters that these patterns treat differently.
    let characters: Vec<char> = "aZ0_-.+/:é\n ".chars().collect();
    for seed in 0..20_000_usize {
        let (mut text, mut rest) = (String::new(), seed);
        while rest > 0 {
            text.extend(characters.get(rest % characters.len()));
            rest /= characters.len();
        }
        assert_eq!(sequence.matches(&text), regex.is_match(&text).unwrap(), "{pattern} {text:?}");
    }
}

#[test]
fn sequences_match_as_the_engine_does() {
    for pattern in [
        "^$",
        "^a*$",
        "^[A-Z]{1,2}-[0-9]+$",
        r"^\+?\d{1,3}$",
        r"^[\w-]+$",
        r"^[\w.+-]+$",
        "^[a-z0-9]+:[a-z]*$",
        "^a?0{0,2}Z*$",
        "^[a-zA-Z_][/]{2}$",
        r"^\w\w$",
        "^[-a]+$",
        "^a{2}a$",
        "^[^]$",
    ] {
        check(pattern, pattern != "^[^]$");
    }
}

#[test]
fn other_patterns_are_left_to_the_engine() {
    for pattern in [
        "a",
        "^a",
        "a$",
        "^(a)$",
        "^a|b$",
        "^.$",
        "^a+?$",
        "^[a-z]+z$",
        "^a*a$",
        "^a?b*a$",
        "^[^a]$",
        r"^\s$",
        r"^\bx$",
        r"^a\$",
        "^é$",
        "^[é]$",
        r"^[\d-z]$",
        "^[z-a]$",
        "^a{2,1}$",
        "^a{$",
        "^a**$",
        "^[]$",
        "^[a$",
        r"^\u0041$",
    ] {
        check(pattern, false);
    }
}
