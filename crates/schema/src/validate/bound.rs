//! The four bounds of a number or of a text with an ordered format.

use std::cmp::Ordering;

use crate::keyword::Keyword;

/// One bound: its keyword for numbers, its keyword for formats, its sign in messages.
#[derive(Debug)]
pub struct Bound {
    pub keyword: Keyword,
    pub format_keyword: Keyword,
    pub sign: &'static str,
    /// Whether a value that compares so with the limit is allowed.
    pub allows: fn(Ordering) -> bool,
}

/// In Ajv's order.
pub static BOUNDS: [Bound; 4] = [
    Bound {
        keyword: Keyword::Maximum,
        format_keyword: Keyword::FormatMaximum,
        sign: "<=",
        allows: Ordering::is_le,
    },
    Bound {
        keyword: Keyword::Minimum,
        format_keyword: Keyword::FormatMinimum,
        sign: ">=",
        allows: Ordering::is_ge,
    },
    Bound {
        keyword: Keyword::ExclusiveMaximum,
        format_keyword: Keyword::FormatExclusiveMaximum,
        sign: "<",
        allows: Ordering::is_lt,
    },
    Bound {
        keyword: Keyword::ExclusiveMinimum,
        format_keyword: Keyword::FormatExclusiveMinimum,
        sign: ">",
        allows: Ordering::is_gt,
    },
];
