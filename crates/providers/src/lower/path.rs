//! Paths through a schema, and arguments that a view declares as JSON text.

use serde_json::Value;

/// One step from a schema to a subschema.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// An element of a list of schemas, such as `anyOf`.
    Branch(&'a str, usize),
    /// The schema of a keyword, such as `items`.
    Keyword(&'a str),
    /// A named schema of a keyword, such as `properties`.
    Entry(&'a str, &'a str),
}

/// The path as a JSON pointer.
pub(super) fn pointer(path: &[Step<'_>]) -> String {
    let mut pointer = String::new();
    let mut push = |part: &str| {
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    };
    for step in path {
        match step {
            Step::Keyword(keyword) => push(keyword),
            Step::Entry(keyword, name) => [keyword, name].into_iter().for_each(|part| push(part)),
            Step::Branch(keyword, at) => [keyword, &*at.to_string()].into_iter().for_each(&mut push),
        }
    }
    pointer
}

/// An argument that the model writes as JSON text, because the provider's dialect cannot express its schema.
#[derive(Debug)]
pub(crate) struct JsonTextArgument {
    /// The path to it: names of members, and `None` for every item.
    path: Vec<Option<String>>,
    /// Whether the text may contain other values than objects and arrays.
    is_any: bool,
}

impl JsonTextArgument {
    pub(super) fn new(path: &[Step<'_>], is_any: bool) -> Self {
        let step = |step: &Step<'_>| match step {
            Step::Entry("properties", name) => Some(Some((*name).to_owned())),
            Step::Keyword("items") | Step::Branch("prefixItems", _) => Some(None),
            _ => None,
        };
        Self { path: path.iter().filter_map(step).collect(), is_any }
    }

    /// Replaces the text by the value that it contains.
    pub(crate) fn restore(&self, arguments: &mut Value) {
        self.restore_below(&self.path, arguments);
    }

    fn restore_below(&self, path: &[Option<String>], value: &mut Value) {
        match (path.split_first(), value) {
            (Some((Some(name), rest)), Value::Object(members)) => {
                if let Some(member) = members.get_mut(name) {
                    self.restore_below(rest, member);
                }
            }
            (Some((None, rest)), Value::Array(items)) => {
                items.iter_mut().for_each(|item| self.restore_below(rest, item));
            }
            (None, value) => {
                let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                if let Some(parsed) = parsed.filter(|one| self.is_any || one.is_object() || one.is_array()) {
                    *value = parsed;
                }
            }
            _ => {}
        }
    }
}
