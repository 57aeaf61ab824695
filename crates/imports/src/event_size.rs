//! Measures server-sent events while their bytes arrive. An event ends with an empty line; comments do not count.

/// The size of the event that has not ended.
#[derive(Debug)]
pub(crate) struct EventSize {
    max: usize,
    /// Of its complete lines.
    lines: usize,
    line: usize,
    is_comment: bool,
    /// The last byte was a carriage return: a line feed after it belongs to the same line end.
    is_after_return: bool,
}

impl EventSize {
    pub const fn new(max: usize) -> Self {
        Self { max, lines: 0, line: 0, is_comment: false, is_after_return: false }
    }

    /// False once an event is larger than the limit.
    pub fn add(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            let is_second_half = byte == b'\n' && self.is_after_return;
            self.is_after_return = byte == b'\r';
            match byte {
                _ if is_second_half => {}
                b'\r' | b'\n' => self.end_line(),
                _ => {
                    self.is_comment = if self.line == 0 { byte == b':' } else { self.is_comment };
                    self.line += 1;
                }
            }
            if self.lines + self.line > self.max {
                return false;
            }
        }
        true
    }

    const fn end_line(&mut self) {
        match self.line {
            0 => self.lines = 0,
            // The parser joins the lines with a line feed.
            length if !self.is_comment => self.lines += length + 1,
            _ => {}
        }
        self.line = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::EventSize;

    #[test]
    fn an_event_is_measured_across_lines_and_chunks() {
        for (chunks, is_allowed) in [
            (["data: 12", "34\n\n"], true),
            (["data: 12", "34567"], false),
            (["data: 1\n\ndata: 2\n\n", "data: 3\n\n"], true),
            (["data: 1\n", "data: 2\n"], false),
            // A line end of two bytes is not an empty line.
            (["data: 1\r\n", "data: 2\r\n"], false),
            (["data: 1\r", "\ndata: 2\r\n"], false),
            (["data: 1\r\n\r\n", "data: 2\r\n"], true),
            ([": 1\n: 2\n: 3\n", ": 4\n: 5\n: 6\n"], true),
            ([": 1234567890", "1"], false),
        ] {
            let mut size = EventSize::new(12);
            assert_eq!(chunks.iter().all(|chunk| size.add(chunk.as_bytes())), is_allowed, "{chunks:?}");
        }
    }
}
