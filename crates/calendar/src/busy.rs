//! Stretches of time, and lists of them in order.

use chrono::{DateTime, Utc};

/// From the first instant up to, and without, the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

impl Span {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn holds(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// In order, without overlaps, only what lies in the window; what has no length blocks nothing.
pub fn merged(mut spans: Vec<Span>, window: Span) -> Vec<Span> {
    spans.retain(|span| span.start < span.end && span.overlaps(&window));
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        let span = Span { start: span.start.max(window.start), end: span.end.min(window.end) };
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        Span { start: at(start), end: at(end) }
    }

    #[test]
    fn overlapping_and_touching_stretches_become_one() {
        let spans = vec![span(50, 60), span(0, 15), span(10, 20), span(20, 30), span(40, 40), span(90, 95)];
        assert_eq!(merged(spans, span(5, 55)), [span(5, 30), span(50, 55)]);
    }

    #[test]
    fn what_only_touches_does_not_overlap() {
        assert!(!span(0, 10).overlaps(&span(10, 20)));
        assert!(span(0, 11).overlaps(&span(10, 20)));
        assert!(span(0, 20).holds(&span(10, 20)) && !span(0, 20).holds(&span(10, 21)));
    }
}
