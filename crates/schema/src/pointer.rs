//! JSON pointers (RFC 6901): how a diagnostic names a place in a document.

/// Which half of an object's member a diagnostic is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Key,
    Value,
}

/// Appends one segment to a pointer.
pub fn push_pointer(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for c in segment.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// `pointer` with one more segment.
pub fn child_pointer(pointer: &str, segment: &str) -> String {
    let mut child = String::with_capacity(pointer.len() + segment.len() + 1);
    child.push_str(pointer);
    push_pointer(&mut child, segment);
    child
}
