//! A cursor over valid JSON text: finds positions without decoding values.

use std::borrow::Cow;
use std::ops::Range;

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn starting_at(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, not consumed.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
        let skipped = rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'))?;
        self.at += skipped;
        rest.get(skipped).copied()
    }

    /// Consumes `byte` if it is next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// Consumes a string and returns its span, quotes included.
    pub(super) fn string(&mut self) -> Option<Range<usize>> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            match bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at)
    }

    /// Consumes any value and returns its span.
    pub(super) fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string(),
            b'{' | b'[' => self.brackets()?,
            _ => {
                let rest = &self.text.as_bytes()[start..];
                let end = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.iter().position(end).unwrap_or(rest.len());
            }
        }
        Some(start..self.at)
    }

    /// Skips an array or object, without recursion.
    fn brackets(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// The decoded text of a string whose span (with quotes) is given.
    pub(super) fn decode(&self, span: &Range<usize>) -> Cow<'a, str> {
        let quoted = &self.text[span.clone()];
        let bare = &quoted[1..quoted.len() - 1];
        if bare.contains('\\') {
            serde_json::from_str(quoted).map_or(Cow::Borrowed(bare), Cow::Owned)
        } else {
            Cow::Borrowed(bare)
        }
    }
}
