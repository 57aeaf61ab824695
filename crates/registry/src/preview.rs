//! The preview that an approver sees: a text with `{{…}}` placeholders for arguments and for values that were read.
//! `{{a.b}}` is a member, `{{list[index]}}` the item whose position is the argument `index`, `{{list.length}}` a
//! count. `{{a|text}}` shows the text when `a` is missing or empty; without a default, a missing argument is empty.

use serde_json::{Map, Value};

/// A template that cannot be parsed or filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a `{{{{` is never closed")]
    Unclosed,
    #[error("`{{{{{0}}}}}` does not name an argument")]
    NotAName(String),
    #[error("there is no `{0}`")]
    Missing(String),
}

enum PreviewPart<'a> {
    Text(&'a str),
    Placeholder(Placeholder<'a>),
}

struct Placeholder<'a> {
    path: &'a str,
    steps: Vec<Step<'a>>,
    default: Option<&'a str>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    /// The item at the position that this argument gives.
    Item(&'a str),
}

/// The arguments that the template uses, in order.
pub fn names(template: &str) -> Result<Vec<&str>, Error> {
    let mut names = Vec::new();
    for part in parts(template)? {
        if let PreviewPart::Placeholder(place) = part {
            names.extend(place.root());
            names.extend(place.steps.iter().filter_map(|step| match step {
                Step::Item(name) => Some(*name),
                Step::Member(_) => None,
            }));
        }
    }
    Ok(names)
}

/// The template with the values filled in. A placeholder below one of the `required` names that has neither value nor
/// default is [`Error::Missing`].
pub fn render(template: &str, values: &Value, required: &[&str]) -> Result<String, Error> {
    let mut out = String::new();
    for part in parts(template)? {
        match part {
            PreviewPart::Text(text) => out.push_str(text),
            PreviewPart::Placeholder(place) => out.push_str(&place.text(values, required)?),
        }
    }
    Ok(out)
}

/// A copy of an object whose texts are templates, filled in. A text that is a single placeholder becomes the value
/// itself.
pub fn fill(members: &Map<String, Value>, values: &Value) -> Result<Map<String, Value>, Error> {
    members.iter().map(|(name, value)| Ok((name.clone(), fill_value(value, values)?))).collect()
}

fn fill_value(value: &Value, values: &Value) -> Result<Value, Error> {
    Ok(match value {
        Value::String(template) => match parts(template)?.as_slice() {
            [PreviewPart::Text(""), PreviewPart::Placeholder(place), PreviewPart::Text("")] => {
                place.look_up(values)
            }
            _ => render(template, values, &[])?.into(),
        },
        Value::Array(items) => {
            items.iter().map(|item| fill_value(item, values)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Value::Object(members) => fill(members, values)?.into(),
        other => other.clone(),
    })
}

impl<'a> Placeholder<'a> {
    fn root(&self) -> Option<&'a str> {
        match self.steps.first() {
            Some(Step::Member(name)) => Some(name),
            _ => None,
        }
    }

    fn text(&self, values: &Value, required: &[&str]) -> Result<String, Error> {
        let text = match self.look_up(values) {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        match self.default {
            Some(default) if text.is_empty() => Ok(default.to_owned()),
            None if text.is_empty() && self.root().is_some_and(|root| required.contains(&root)) => {
                Err(Error::Missing(self.path.to_owned()))
            }
            _ => Ok(text),
        }
    }

    fn look_up(&self, values: &Value) -> Value {
        let mut value = values;
        for step in &self.steps {
            let inner = match step {
                Step::Member("length") if value.get("length").is_none() => return length(value),
                Step::Member(name) => value.get(name),
                Step::Item(name) => values
                    .get(name)
                    .and_then(Value::as_u64)
                    .and_then(|index| value.get(usize::try_from(index).ok()?)),
            };
            match inner {
                Some(inner) => value = inner,
                None => return Value::Null,
            }
        }
        value.clone()
    }
}

fn length(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.len().into(),
        Value::String(text) => text.chars().count().into(),
        _ => Value::Null,
    }
}

fn parts(template: &str) -> Result<Vec<PreviewPart<'_>>, Error> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (place, tail) = after.split_once("}}").ok_or(Error::Unclosed)?;
        parts.push(PreviewPart::Text(before));
        parts.push(PreviewPart::Placeholder(parse_place(place.trim())?));
        rest = tail;
    }
    parts.push(PreviewPart::Text(rest));
    Ok(parts)
}

fn parse_place(text: &str) -> Result<Placeholder<'_>, Error> {
    let (path, default) = match text.split_once('|') {
        Some((path, default)) => (path.trim(), Some(default.trim())),
        None => (text, None),
    };
    let not_a_name = || Error::NotAName(path.to_owned());
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut steps = Vec::new();
    for part in path.split('.') {
        let mut parts = part.split('[');
        let name = parts.next().filter(|name| is_name(name)).ok_or_else(not_a_name)?;
        steps.push(Step::Member(name));
        for item in parts {
            let index = item.strip_suffix(']').filter(|name| is_name(name)).ok_or_else(not_a_name)?;
            steps.push(Step::Item(index));
        }
    }
    Ok(Placeholder { path, steps, default })
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
