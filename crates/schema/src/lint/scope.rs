//! The context of a schema: the types, the known properties and what is evaluated.

use serde_json::{Map, Value};

use super::ref_resolver::Base;
use crate::types::TypeSet;

/// The context of a schema; Ajv calls it `it`.
#[derive(Clone, Copy)]
pub struct Scope {
    /// Types that the instance can have.
    pub types: TypeSet,
    /// Inside `anyOf`, `not` and the like, where defaults are not filled in.
    pub composite: bool,
    pub known_properties: SetId,
    pub base: Base,
    /// Whether the schema is part of one that Ajv compiles as a function.
    pub is_inner: bool,
    pub is_async: bool,
    pub evaluated: Evaluated,
}

/// A set of names, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetId(u32);

enum Entry<'s> {
    All(&'s Map<String, Value>),
    One(&'s str),
}

/// The property names that `required` may use. As in Ajv, they are sets that schemas of one instance share, with a new
/// set for each child of the instance.
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

/// How many of the properties or items are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvaluatedExtent {
    #[default]
    Nothing,
    Some,
    All,
    /// Known at validation only.
    Dynamic,
}

impl EvaluatedExtent {
    /// Adds what a subschema evaluates.
    pub fn merge(&mut self, from: Self) {
        *self = match (*self, from) {
            (Self::All, _) | (Self::Some, Self::All) => Self::All,
            (Self::Nothing, other) => other,
            (known, Self::Nothing) => known,
            (Self::Dynamic, _) | (_, Self::Dynamic) => Self::Dynamic,
            (Self::Some, Self::Some) => Self::Some,
        };
    }

    /// Adds what a subschema evaluates that may not apply.
    pub fn merge_conditional(&mut self, from: Self) {
        if *self != Self::All && from != Self::Nothing {
            *self = Self::Dynamic;
        }
    }
}

/// Which properties and items are evaluated, as far as Ajv knows at compile time. It decides whether the
/// schema of an `unevaluated…` keyword is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evaluated {
    pub properties: EvaluatedExtent,
    pub items: EvaluatedExtent,
}

impl Evaluated {
    pub const fn both(extent: EvaluatedExtent) -> Self {
        Self { properties: extent, items: extent }
    }

    pub fn merge(&mut self, from: Self) {
        self.properties.merge(from.properties);
        self.items.merge(from.items);
    }

    pub fn merge_conditional(&mut self, from: Self) {
        self.properties.merge_conditional(from.properties);
        self.items.merge_conditional(from.items);
    }
}
