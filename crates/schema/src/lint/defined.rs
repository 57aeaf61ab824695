//! The property names in sight of a `required`, kept as Ajv keeps them: in sets that are shared
//! between schemas of one instance and renewed whenever the walk goes into a part of it.

use serde_json::{Map, Value};

/// A set of names, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set(u32);

enum Entry<'s> {
    All(&'s Map<String, Value>),
    One(&'s str),
}

#[derive(Default)]
pub struct Defined<'s> {
    sets: u32,
    entries: Vec<(Set, Entry<'s>)>,
}

impl<'s> Defined<'s> {
    pub fn fresh(&mut self) -> Set {
        self.sets = self.sets.wrapping_add(1);
        Set(self.sets)
    }

    pub fn add_all(&mut self, set: Set, properties: &'s Map<String, Value>) {
        self.entries.push((set, Entry::All(properties)));
    }

    pub fn add(&mut self, set: Set, name: &'s str) {
        self.entries.push((set, Entry::One(name)));
    }

    pub fn has(&self, set: Set, name: &str) -> bool {
        self.entries.iter().rev().filter(|(owner, _)| *owner == set).any(|(_, entry)| match entry {
            Entry::All(properties) => properties.contains_key(name),
            Entry::One(known) => *known == name,
        })
    }
}
