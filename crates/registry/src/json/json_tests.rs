use serde_json::json;
use toolwright_schema::pointer::Part;

use super::*;

fn text_at(text: &str, pointer: &str, part: Part) -> Option<String> {
    locate(text, pointer, part).map(|span| text[span].to_owned())
}

#[test]
fn a_pointer_is_located_at_its_key_or_value() {
    let text = r#"{ "a": {"b/c": [1, {"d~": "x\"y"}, true ]}, "é": null }"#;
    let cases = [
        ("", Part::Value, text),
        ("/a", Part::Key, r#""a""#),
        ("/a/b~1c", Part::Key, r#""b/c""#),
        ("/a/b~1c/0", Part::Value, "1"),
        ("/a/b~1c/1/d~0", Part::Value, r#""x\"y""#),
        ("/a/b~1c/2", Part::Value, "true"),
        ("/a/b~1c/2", Part::Key, "true"),
        ("/é", Part::Value, "null"),
    ];
    for (pointer, part, expected) in cases {
        assert_eq!(text_at(text, pointer, part).as_deref(), Some(expected), "{pointer}");
    }
    for absent in ["/b", "/a/b~1c/3", "/a/b~1c/x", "/é/1"] {
        assert_eq!(text_at(text, absent, Part::Value), None, "{absent}");
    }
}

#[test]
fn escaped_keys_are_decoded_before_they_are_compared() {
    assert_eq!(text_at(r#"{"\u0061b": 1}"#, "/ab", Part::Value).as_deref(), Some("1"));
}

#[test]
fn the_last_of_repeated_keys_is_used_and_all_repetitions_are_listed() {
    let text = r#"{"a": 1, "b": {"a": 2, "a": 3}, "a": [{"a": 1}], "\u0061": 4}"#;
    let parsed = parse(text).unwrap();
    assert_eq!(parsed.value, json!({"a": 4, "b": {"a": 3}}));
    let found: Vec<_> =
        parsed.duplicate_keys.into_iter().map(|(span, key)| (text[span].to_owned(), key)).collect();
    let quoted = |raw: &str| (raw.to_owned(), "a".to_owned());
    assert_eq!(found, [quoted(r#""a""#), quoted(r#""a""#), quoted(r#""\u0061""#)]);
    assert_eq!(text_at(text, "/a", Part::Value).as_deref(), Some("4"));
}

#[test]
fn a_syntax_error_points_at_the_offending_character() {
    let text = "{\n  \"a\": 1,\n  \"ü\": é\n}";
    let error = parse(text).unwrap_err();
    assert_eq!(&text[error.span.clone()], "é");
    assert_eq!(error.message, "expected value");
    assert_eq!(parse("").unwrap_err().span, 0..0);
    assert_eq!(parse("{} x").unwrap_err().message, "trailing characters");
    assert!(parse(&"[".repeat(10_000)).unwrap_err().message.contains("recursion limit"));
}

#[test]
fn canonical_json_follows_rfc_8785() {
    let canonical = |value| {
        let mut out = Vec::new();
        write_canonical(&value, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        canonical(
            json!({"\u{20ac}": 1, "b": [1.0, 1e21, 1e-7, 0.5, -0.0, 1e20], "a": {"z": null, "y": "\u{1}é"}})
        ),
        "{\"a\":{\"y\":\"\\u0001é\",\"z\":null},\"b\":[1,1e+21,1e-7,0.5,0,100000000000000000000],\"\u{20ac}\":1}"
    );
    // U+1F600 is D83D DE00 in UTF-16 and so sorts before U+FB33.
    assert_eq!(canonical(json!({"\u{fb33}": 1, "\u{1f600}": 2})), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
}
