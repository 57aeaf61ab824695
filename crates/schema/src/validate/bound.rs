//! The four sides on which a value can be bounded.

use std::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Maximum,
    Minimum,
    ExclusiveMaximum,
    ExclusiveMinimum,
}

impl Bound {
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
            Self::ExclusiveMaximum => "exclusiveMaximum",
            Self::ExclusiveMinimum => "exclusiveMinimum",
        }
    }

    pub const fn format_keyword(self) -> &'static str {
        match self {
            Self::Maximum => "formatMaximum",
            Self::Minimum => "formatMinimum",
            Self::ExclusiveMaximum => "formatExclusiveMaximum",
            Self::ExclusiveMinimum => "formatExclusiveMinimum",
        }
    }

    pub const fn sign(self) -> &'static str {
        match self {
            Self::Maximum => "<=",
            Self::Minimum => ">=",
            Self::ExclusiveMaximum => "<",
            Self::ExclusiveMinimum => ">",
        }
    }

    /// Whether a value that compares so with the limit is allowed.
    pub fn allows(self, order: Ordering) -> bool {
        match self {
            Self::Maximum => order.is_le(),
            Self::Minimum => order.is_ge(),
            Self::ExclusiveMaximum => order.is_lt(),
            Self::ExclusiveMinimum => order.is_gt(),
        }
    }
}
