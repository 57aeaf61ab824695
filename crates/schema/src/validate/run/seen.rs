//! Which properties and items have been evaluated, for the `unevaluated…` keywords.

use crate::validate::node::{NO_SLOT, OfObject};

#[derive(Default)]
pub struct Seen<'c> {
    pub all_properties: bool,
    /// Schemas whose declared properties count.
    tables: Vec<&'c OfObject>,
    names: Vec<String>,
    pub all_items: bool,
    /// So many items from the start.
    pub items: usize,
    /// Items that a `contains` takes.
    single_items: Vec<usize>,
}

impl<'c> Seen<'c> {
    pub fn merge(&mut self, other: Self) {
        self.all_properties |= other.all_properties;
        self.tables.extend(other.tables);
        self.names.extend(other.names);
        self.all_items |= other.all_items;
        self.items = self.items.max(other.items);
        self.single_items.extend(other.single_items);
    }

    pub fn item(&mut self, index: usize) {
        self.single_items.push(index);
    }

    /// For each item of an array, whether it has been evaluated; to be asked unless all have.
    pub fn marked_items(&self, length: usize) -> Vec<bool> {
        let mut marked: Vec<bool> = (0..length).map(|index| index < self.items).collect();
        for index in &self.single_items {
            if let Some(mark) = marked.get_mut(*index) {
                *mark = true;
            }
        }
        marked
    }

    pub fn declared(&mut self, table: &'c OfObject) {
        self.tables.push(table);
    }

    pub fn name(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    pub fn has(&self, name: &str) -> bool {
        self.all_properties
            || self.tables.iter().any(|table| table.slot(name, 0) != NO_SLOT)
            || self.names.iter().any(|seen| seen == name)
    }
}
