//! The property names that `required` may use. As in Ajv, they are sets that schemas of one instance share, with a new
//! set for each child of the instance.

use serde_json::{Map, Value};

/// A set of names, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetId(u32);

enum Entry<'s> {
    All(&'s Map<String, Value>),
    One(&'s str),
}

#[derive(Default)]
pub struct KnownProperties<'s> {
    sets: u32,
    entries: Vec<(SetId, Entry<'s>)>,
}

impl<'s> KnownProperties<'s> {
    pub fn new_set(&mut self) -> SetId {
        self.sets = self.sets.wrapping_add(1);
        SetId(self.sets)
    }

    pub fn add_all(&mut self, set: SetId, properties: &'s Map<String, Value>) {
        self.entries.push((set, Entry::All(properties)));
    }

    pub fn add(&mut self, set: SetId, name: &'s str) {
        self.entries.push((set, Entry::One(name)));
    }

    pub fn contains(&self, set: SetId, name: &str) -> bool {
        self.entries.iter().rev().filter(|(owner, _)| *owner == set).any(|(_, entry)| match entry {
            Entry::All(properties) => properties.contains_key(name),
            Entry::One(known) => *known == name,
        })
    }
}
