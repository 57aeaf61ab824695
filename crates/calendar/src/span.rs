//! Periods of time, and sorted lists of them.

use chrono::{DateTime, Utc};

/// From `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

impl Span {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Sorts the spans, joins those that overlap or touch, and cuts them to the window. Empty spans are dropped.
pub fn merge_spans(mut spans: Vec<Span>, window: Span) -> Vec<Span> {
    spans.retain(|span| span.start < span.end && span.overlaps(&window));
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
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
#[path = "span_tests.rs"]
mod tests;
