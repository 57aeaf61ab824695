//! Which properties and items have been evaluated, for the `unevaluated…` keywords.

use super::super::compiled_schema::{NO_SLOT, ObjectRules};

#[derive(Default)]
pub struct Evaluated<'c> {
    pub all_properties: bool,
    /// Schemas whose declared properties are evaluated.
    pub declared: Vec<&'c ObjectRules>,
    pub names: Vec<String>,
    pub all_items: bool,
    /// The number of items evaluated from the start.
    pub items: usize,
    /// Items that match a `contains`.
    pub single_items: Vec<usize>,
}

impl Evaluated<'_> {
    pub fn merge(&mut self, other: Self) {
        self.all_properties |= other.all_properties;
        self.declared.extend(other.declared);
        self.names.extend(other.names);
        self.all_items |= other.all_items;
        self.items = self.items.max(other.items);
        self.single_items.extend(other.single_items);
    }

    /// For each item of an array, whether it has been evaluated, unless all have.
    pub fn evaluated_items(&self, length: usize) -> Vec<bool> {
        let mut evaluated: Vec<bool> = (0..length).map(|index| index < self.items).collect();
        for index in &self.single_items {
            if let Some(item) = evaluated.get_mut(*index) {
                *item = true;
            }
        }
        evaluated
    }

    pub fn has_property(&self, name: &str) -> bool {
        self.all_properties
            || self.declared.iter().any(|rules| rules.slot(name, 0) != NO_SLOT)
            || self.names.iter().any(|evaluated| evaluated == name)
    }
}
