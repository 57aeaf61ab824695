//! The preview that an approver sees: a text with `{{argument}}` places.
//! `{{a.b}}` is a member, `{{list.length}}` a count, and a missing argument is empty.

use serde_json::Value;

/// A template that cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a `{{{{` is never closed")]
    Unclosed,
    #[error("`{{{{{0}}}}}` does not name an argument")]
    NotAName(String),
}

enum Piece<'a> {
    Text(&'a str),
    Path(&'a str),
}

/// The arguments that the template uses, in order.
pub fn names(template: &str) -> Result<Vec<&str>, Error> {
    let names = pieces(template)?.into_iter().filter_map(|piece| match piece {
        Piece::Path(path) => path.split('.').next(),
        Piece::Text(_) => None,
    });
    Ok(names.collect())
}

/// The template with the arguments filled in.
pub fn render(template: &str, args: &Value) -> Result<String, Error> {
    let mut out = String::new();
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Path(path) => match look_up(args, path) {
                Value::Null => {}
                Value::String(text) => out.push_str(&text),
                other => out.push_str(&other.to_string()),
            },
        }
    }
    Ok(out)
}

fn look_up(args: &Value, path: &str) -> Value {
    let mut value = args;
    for name in path.split('.') {
        match value.get(name) {
            Some(inner) => value = inner,
            None if name == "length" => {
                return match value {
                    Value::Array(items) => items.len().into(),
                    Value::String(text) => text.chars().count().into(),
                    _ => Value::Null,
                };
            }
            None => return Value::Null,
        }
    }
    value.clone()
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>, Error> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (path, tail) = after.split_once("}}").ok_or(Error::Unclosed)?;
        let path = path.trim();
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !path.split('.').all(is_name) {
            return Err(Error::NotAName(path.to_owned()));
        }
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Path(path));
        rest = tail;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
