//! The JSON examples of a document, with a mapping from offsets in an example to offsets in the file.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleKind {
    /// Arguments of a call, or an envelope.
    Json,
    /// A result that is not an envelope.
    JsonResult,
    /// Not an example.
    Other,
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
    /// An empty block that begins at `start`.
    pub(super) fn new(info: &str, start: usize) -> Self {
        let kind = ExampleKind::from_info(info);
        Self { kind, span: start..start, text: String::new(), line_starts: Vec::new() }
    }

    /// Appends bytes of the source, not the parser's text: so columns in the example are columns in the file.
    pub(super) fn push(&mut self, source: &str, bytes: Range<usize>) {
        let Some(text) = source.get(bytes.clone()) else { return };
        if self.line_starts.is_empty() {
            self.span.start = bytes.start;
        }
        self.span.end = bytes.end;
        let mut at = bytes.start;
        for line in text.split_inclusive('\n') {
            if self.line_starts.is_empty() || self.text.ends_with('\n') {
                self.line_starts.push(at);
            }
            self.text.push_str(line);
            at += line.len();
        }
    }

    /// The offset in the file of the byte `offset` of `text`.
    pub fn offset_in_file(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.line_starts.get(line).map_or(self.span.end, |start| start + offset - line_start)
    }

    /// The span in the file of a span of `text`.
    pub fn in_file(&self, span: &Range<usize>) -> Range<usize> {
        self.offset_in_file(span.start)..self.offset_in_file(span.end)
    }
}

impl ExampleKind {
    /// The kind that a fence's info string states.
    fn from_info(info: &str) -> Self {
        let mut words = info.split_whitespace();
        let is_json = words.next().is_some_and(|word| word.eq_ignore_ascii_case("json"));
        let is_result = words.next().is_some_and(|word| word.eq_ignore_ascii_case("result"));
        match (is_json, is_result) {
            (false, _) => Self::Other,
            (true, true) => Self::JsonResult,
            (true, false) => Self::Json,
        }
    }
}
