use super::*;

fn at(text: &str, place: Place) -> (usize, usize, Option<String>) {
    let found = Finding::error("code", "schema.json", place, "message").locate("tool", Some(text));
    (found.line, found.column, found.span.map(|span| text[span].to_owned()))
}

#[test]
fn columns_count_characters_and_lines_count_from_one() {
    let text = "{\n  \"ü\": \"é\", \"x\": 1\n}";
    let pointer = |pointer: &str| Place::Json { pointer: pointer.to_owned(), part: Part::Value };
    assert_eq!(at(text, pointer("/x")), (2, 18, Some("1".to_owned())));
    assert_eq!(at(text, Place::File), (1, 1, None));
    assert_eq!(at(text, Place::Span(0..1)), (1, 1, Some("{".to_owned())));
}

#[test]
fn a_pointer_to_something_absent_falls_back_to_its_nearest_ancestor() {
    let place = Place::Json { pointer: "/a/b/c".to_owned(), part: Part::Key };
    assert_eq!(at(r#"{"a": {"x": 1}}"#, place), (1, 2, Some("\"a\"".to_owned())));
}

#[test]
fn a_span_outside_the_text_is_clipped_to_it() {
    assert_eq!(at("é", Place::Span(1..99)), (1, 1, Some("é".to_owned())));
}
