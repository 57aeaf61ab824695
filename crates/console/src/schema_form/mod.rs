//! A form for the arguments of a tool, from its JSON Schema: nested objects, lists, choices, alternatives and
//! references. Other schemas get a text field for JSON. [`build`] makes the fields, [`decode`] reads the submitted
//! form.
//!
//! The name of a control is the path of its value: `args/filters/tags/0`; `@1` after a path marks the alternative.

mod build;
mod decode;
mod schema;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::parts::Choice;

pub use build::build;
pub use decode::{FormValues, decode};
pub(crate) use schema::Schema;

/// The name of the control of all arguments.
pub const ROOT: &str = "args";
/// Deeper values are fields for JSON.
const MAX_DEPTH: usize = 6;
/// The number of an item that a script replaces when it adds one.
const NEW_ITEM: &str = "new";

/// One value of the form.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "parts/field.html")]
pub struct Field {
    /// The name of the control, and the id of the element.
    pub name: String,
    pub label: String,
    pub description: String,
    /// The constraints in words.
    pub hint: String,
    pub is_required: bool,
    pub errors: Vec<String>,
    pub control: Control,
}

/// The control of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// One line; the kind is that of the HTML element.
    Line {
        kind: &'static str,
        value: String,
    },
    /// Several lines.
    Text {
        value: String,
    },
    Number {
        value: String,
        step: &'static str,
        min: Option<String>,
        max: Option<String>,
    },
    Choice {
        choices: Vec<Choice>,
    },
    Object {
        fields: Vec<Field>,
    },
    /// `spare` is the item of an empty list where no script can add one; the template is a further item.
    List {
        items: Vec<Field>,
        spare: Option<Box<Field>>,
        template: Box<Field>,
        most: Option<u64>,
    },
    /// The name of the control that chooses, the choices, and one field each.
    Alternatives {
        choice: String,
        choices: Vec<Choice>,
        fields: Vec<Field>,
    },
    /// Any value, as JSON.
    Json {
        value: String,
    },
}

impl Field {
    fn is_group(&self) -> bool {
        matches!(self.control, Control::Object { .. } | Control::List { .. } | Control::Alternatives { .. })
    }

    fn is_invalid(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The ids of the elements that describe the control.
    fn described_by(&self) -> String {
        let has_hint = !self.hint.is_empty() || !self.description.is_empty();
        let ids = [
            has_hint.then(|| format!("{}.hint", self.name)),
            self.is_invalid().then(|| format!("{}.error", self.name)),
        ];
        ids.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl HtmlSafe for Field {}

#[cfg(test)]
#[path = "schema_form_tests.rs"]
mod tests;
