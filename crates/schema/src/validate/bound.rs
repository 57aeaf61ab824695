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
    Bound::new(Keyword::Maximum, Keyword::FormatMaximum, "<=", Ordering::is_le),
    Bound::new(Keyword::Minimum, Keyword::FormatMinimum, ">=", Ordering::is_ge),
    Bound::new(Keyword::ExclusiveMaximum, Keyword::FormatExclusiveMaximum, "<", Ordering::is_lt),
    Bound::new(Keyword::ExclusiveMinimum, Keyword::FormatExclusiveMinimum, ">", Ordering::is_gt),
];

impl Bound {
    const fn new(
        keyword: Keyword,
        format_keyword: Keyword,
        sign: &'static str,
        allows: fn(Ordering) -> bool,
    ) -> Self {
        Self { keyword, format_keyword, sign, allows }
    }
}
