//! Finds the bytes of a text that a JSON pointer names. Runs only when there is a diagnostic.

use std::collections::HashSet;
use std::ops::Range;

use toolwright_schema::pointer::Part;

use super::scan::Scanner;

/// The span in `text` of the value, or of its key, that `pointer` names. `None` if there is no such value.
pub fn locate(text: &str, pointer: &str, part: Part) -> Option<Range<usize>> {
    let mut scanner = Scanner::new(text);
    let mut key = None;
    for raw in pointer.split('/').skip(1) {
        let segment = raw.replace("~1", "/").replace("~0", "~");
        let found = match scanner.peek()? {
            b'{' => member(text, scanner.position(), &segment)?,
            b'[' => (None, element(text, scanner.position(), segment.parse().ok()?)?),
            _ => return None,
        };
        key = found.0;
        scanner = Scanner::starting_at(text, found.1);
    }
    match (part, key) {
        (Part::Key, Some(key)) => Some(key),
        _ => scanner.value(),
    }
}

/// The key's span and the value's start. Of repeated keys the last one counts, as in the parser.
fn member(text: &str, object: usize, name: &str) -> Option<(Option<Range<usize>>, usize)> {
    let mut scanner = Scanner::starting_at(text, object + 1);
    let mut found = None;
    loop {
        if scanner.eat(b'}') {
            return found;
        }
        scanner.eat(b',');
        let key = scanner.string()?;
        scanner.eat(b':');
        scanner.peek()?;
        if scanner.decode(&key) == name {
            found = Some((Some(key), scanner.position()));
        }
        scanner.value()?;
    }
}

fn element(text: &str, array: usize, index: usize) -> Option<usize> {
    let mut scanner = Scanner::starting_at(text, array + 1);
    for _ in 0..index {
        scanner.value()?;
        if !scanner.eat(b',') {
            return None;
        }
    }
    (scanner.peek()? != b']').then(|| scanner.position())
}

/// The spans of all keys that repeat an earlier key of the same object, with the key's name.
pub fn duplicate_keys(text: &str) -> Vec<(Range<usize>, String)> {
    let mut scanner = Scanner::new(text);
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut found = Vec::new();
    while let Some(byte) = scanner.peek() {
        match byte {
            b'{' => open.push(Some(HashSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let Some(span) = scanner.string() else { break };
                if scanner.peek() == Some(b':')
                    && let Some(Some(keys)) = open.last_mut()
                {
                    let key = scanner.decode(&span).into_owned();
                    if !keys.insert(key.clone()) {
                        found.push((span, key));
                    }
                }
                continue;
            }
            _ => {}
        }
        scanner.eat(byte);
    }
    found
}
