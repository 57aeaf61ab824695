use super::*;

fn span(start: i64, end: i64) -> Span {
    let at = |second| DateTime::from_timestamp(second, 0).unwrap();
    Span { start: at(start), end: at(end) }
}

#[test]
fn overlapping_and_touching_spans_are_joined() {
    let spans = vec![span(50, 60), span(0, 15), span(10, 20), span(20, 30), span(40, 40), span(90, 95)];
    assert_eq!(merge_spans(spans, span(5, 55)), [span(5, 30), span(50, 55)]);
}

#[test]
fn touching_spans_do_not_overlap() {
    assert!(!span(0, 10).overlaps(&span(10, 20)));
    assert!(span(0, 11).overlaps(&span(10, 20)));
    assert!(span(0, 20).contains(&span(10, 20)) && !span(0, 20).contains(&span(10, 21)));
}
