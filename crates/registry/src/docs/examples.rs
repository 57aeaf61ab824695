//! The JSON examples of a document, with a way back from an offset in an example to the file.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleKind {
    /// Arguments of a call, or an envelope.
    Json,
    /// A result that is no envelope.
    JsonResult,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub kind: ExampleKind,
    /// The block's contents in the file.
    pub span: Range<usize>,
    /// The contents as written, without the fence's indentation and quote marks.
    pub text: String,
    /// For each line of `text`, its byte offset in the file.
    pub line_starts: Vec<usize>,
}

impl Example {
    /// Where the byte `offset` of `text` stands in the file.
    pub fn offset_in_file(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.line_starts.get(line).map_or(self.span.end, |start| start + offset - line_start)
    }
}

impl Example {
    /// Where a span of `text` stands in the file.
    pub fn in_file(&self, span: &Range<usize>) -> Range<usize> {
        self.offset_in_file(span.start)..self.offset_in_file(span.end)
    }
}

impl ExampleKind {
    /// What a fence's info string says; `None` when the block is no example.
    pub(super) fn of(info: &str) -> Option<Self> {
        let mut words = info.split_whitespace();
        let is_json = words.next().is_some_and(|word| word.eq_ignore_ascii_case("json"));
        let is_result = words.next().is_some_and(|word| word.eq_ignore_ascii_case("result"));
        match (is_json, is_result) {
            (false, _) => None,
            (true, true) => Some(Self::JsonResult),
            (true, false) => Some(Self::Json),
        }
    }
}

/// A code block while its pieces arrive from the parser.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub text: String,
    line_starts: Vec<usize>,
    span: Option<Range<usize>>,
}

impl Block {
    /// Takes the source's bytes, not the parser's text: so a column in the example is a column in
    /// the file.
    pub fn push(&mut self, source: &str, piece: Range<usize>) {
        let Some(written) = source.get(piece.clone()) else {
            return;
        };
        let mut at = piece.start;
        for line in written.split_inclusive('\n') {
            if self.text.is_empty() && self.line_starts.is_empty() || self.text.ends_with('\n') {
                self.line_starts.push(at);
            }
            self.text.push_str(line);
            at += line.len();
        }
        let start = self.span.as_ref().map_or(piece.start, |span| span.start);
        self.span = Some(start..piece.end);
    }

    /// `empty_at` is where the contents would stand if there were any.
    pub fn finish(self, kind: ExampleKind, empty_at: usize) -> Example {
        let span = self.span.unwrap_or(empty_at..empty_at);
        let line_starts = if self.line_starts.is_empty() { vec![span.start] } else { self.line_starts };
        Example { kind, span, text: self.text, line_starts }
    }
}
