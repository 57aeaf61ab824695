//! The first page: what runs, what is wrong and how to fix it, and how to connect.

use askama::Template;

use crate::layout::Layout;
use crate::parts::Notice;
use crate::recipe::Recipe;

#[derive(Debug, Template)]
#[template(path = "home.html")]
pub struct HomePage {
    pub layout: Layout,
    /// `Everything is running`, or what is not.
    pub headline: String,
    pub subline: String,
    pub notices: Vec<Notice>,
    pub facts: Vec<Fact>,
    pub recipes: Vec<Recipe>,
}

/// One thing that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub name: String,
    pub value: String,
    pub note: String,
}

impl Fact {
    pub fn new(name: &str, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into(), note: note.into() }
    }
}
