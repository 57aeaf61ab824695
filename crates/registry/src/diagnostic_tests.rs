use super::*;

fn locate_in(text: &str, location: Location) -> (usize, usize, Option<String>) {
    let found = DiagnosticDraft::error("code", "schema.json", location, "message").locate("tool", Some(text));
    (found.line, found.column, found.span.map(|span| text[span].to_owned()))
}

#[test]
fn columns_count_characters_and_lines_count_from_one() {
    let text = "{\n  \"ü\": \"é\", \"x\": 1\n}";
    let pointer = |pointer: &str| Location::Json { pointer: pointer.to_owned(), part: Part::Value };
    assert_eq!(locate_in(text, pointer("/x")), (2, 18, Some("1".to_owned())));
    assert_eq!(locate_in(text, Location::File), (1, 1, None));
    assert_eq!(locate_in(text, Location::Span(0..1)), (1, 1, Some("{".to_owned())));
}

#[test]
fn a_pointer_to_an_absent_value_is_located_at_its_nearest_ancestor() {
    let location = Location::Json { pointer: "/a/b/c".to_owned(), part: Part::Key };
    assert_eq!(locate_in(r#"{"a": {"x": 1}}"#, location), (1, 2, Some("\"a\"".to_owned())));
}

#[test]
fn a_span_outside_the_text_is_clipped_to_it() {
    assert_eq!(locate_in("é", Location::Span(1..99)), (1, 1, Some("é".to_owned())));
}
