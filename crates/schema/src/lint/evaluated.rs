//! What Ajv knows at compile time about evaluated properties and items. It decides whether the
//! schema of an `unevaluated…` keyword is compiled at all.

/// How much has been evaluated so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seen {
    #[default]
    Nothing,
    Some,
    All,
    /// Only known when validating.
    Dynamic,
}

impl Seen {
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

    /// Adds what a subschema evaluates if it applies.
    pub fn merge_if(&mut self, from: Self) {
        if *self != Self::All && from != Self::Nothing {
            *self = Self::Dynamic;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evaluated {
    pub properties: Seen,
    pub items: Seen,
}

impl Evaluated {
    pub const fn both(seen: Seen) -> Self {
        Self { properties: seen, items: seen }
    }

    pub fn merge(&mut self, from: Self) {
        self.properties.merge(from.properties);
        self.items.merge(from.items);
    }

    pub fn merge_if(&mut self, from: Self) {
        self.properties.merge_if(from.properties);
        self.items.merge_if(from.items);
    }
}
