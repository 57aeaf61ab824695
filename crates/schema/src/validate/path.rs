//! Places, kept on the stack as chains of borrowed steps and written out only for an error: in the
//! instance (a JSON pointer) and in the schema (a fragment, as Ajv writes it).

use std::fmt::Write;

use crate::validate::node::{Arena, Id, Place};

/// A place in the instance.
#[derive(Debug, Clone, Copy)]
pub enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(32);
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(parent, key) => {
                parent.write(text);
                text.push('/');
                push_escaped(text, key);
            }
            Self::Index(parent, index) => {
                parent.write(text);
                let _ = write!(text, "/{index}");
            }
        }
    }
}

fn push_escaped(text: &mut String, key: &str) {
    if !key.contains(['~', '/']) {
        return text.push_str(key);
    }
    for character in key.chars() {
        match character {
            '~' => text.push_str("~0"),
            '/' => text.push_str("~1"),
            other => text.push(other),
        }
    }
}

/// The schema path of a keyword in a node.
pub fn schema_path(arena: &Arena, node: Id, keyword: &str) -> String {
    let mut text = String::with_capacity(64);
    write_place(arena, node, &mut text);
    push_step(&mut text, keyword);
    text
}

fn write_place(arena: &Arena, node: Id, text: &mut String) {
    let Some(node) = arena.nodes.get(node as usize) else { return };
    match &node.place {
        Place::Root => text.push('#'),
        Place::Reference(reference) => text.push_str(reference),
        Place::Keyword(parent, keyword) => {
            write_place(arena, *parent, text);
            push_step(text, keyword);
        }
        Place::Index(parent, keyword, index) => {
            write_place(arena, *parent, text);
            let _ = write!(text, "/{keyword}/{index}");
        }
        Place::Member(parent, keyword, name) => {
            write_place(arena, *parent, text);
            push_step(text, keyword);
            text.push('/');
            push_encoded(text, name);
        }
    }
}

fn push_step(text: &mut String, keyword: &str) {
    text.push('/');
    text.push_str(keyword);
}

/// `encodeURIComponent` of the name escaped for a pointer.
fn push_encoded(text: &mut String, name: &str) {
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return text.push_str(name);
    }
    let mut escaped = String::with_capacity(name.len());
    push_escaped(&mut escaped, name);
    for byte in escaped.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
}
