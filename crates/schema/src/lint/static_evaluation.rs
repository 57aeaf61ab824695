//! Which properties and items are evaluated, as far as Ajv knows at compile time. It decides whether the
//! schema of an `unevaluated…` keyword is compiled.

/// How many of the properties or items are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    #[default]
    Nothing,
    Some,
    All,
    /// Known at validation only.
    Dynamic,
}

impl Extent {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evaluated {
    pub properties: Extent,
    pub items: Extent,
}

impl Evaluated {
    pub const fn both(extent: Extent) -> Self {
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
