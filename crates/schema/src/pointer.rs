//! JSON pointers (RFC 6901): how diagnostics and validation errors name a place in a document.

use std::borrow::Cow;
use std::fmt::Write;

/// Which half of an object's member a diagnostic is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Key,
    Value,
}

/// Appends one segment to a pointer.
pub fn push_pointer(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&escape(segment));
}

/// A segment with `~` and `/` escaped.
pub(crate) fn escape(segment: &str) -> Cow<'_, str> {
    if segment.contains(['~', '/']) {
        segment.replace('~', "~0").replace('/', "~1").into()
    } else {
        segment.into()
    }
}

/// `pointer` with one more segment.
pub fn child_pointer(pointer: &str, segment: &str) -> String {
    let mut child = String::with_capacity(pointer.len() + segment.len() + 1);
    child.push_str(pointer);
    push_pointer(&mut child, segment);
    child
}

/// A place in a document: a chain of borrowed segments on the stack, written as text only when it is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Location<'p> {
    Root,
    /// A place reached through a reference, as a pointer.
    Pointer(&'p str),
    Key(&'p Location<'p>, &'p str),
    Index(&'p Location<'p>, usize),
}

impl<'p> Location<'p> {
    pub fn key(&'p self, key: &'p str) -> Location<'p> {
        Location::Key(self, key)
    }

    pub fn index(&'p self, index: usize) -> Location<'p> {
        Location::Index(self, index)
    }

    pub fn to_pointer(self) -> String {
        let mut pointer = String::with_capacity(32);
        self.write_to(&mut pointer);
        pointer
    }

    fn write_to(&self, pointer: &mut String) {
        match self {
            Location::Root => {}
            Location::Pointer(text) => pointer.push_str(text),
            Location::Key(parent, key) => {
                parent.write_to(pointer);
                push_pointer(pointer, key);
            }
            Location::Index(parent, index) => {
                parent.write_to(pointer);
                // Writing to a String cannot fail.
                let _ = write!(pointer, "/{index}");
            }
        }
    }
}
