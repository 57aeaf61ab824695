//! iCalendar (RFC 5545): events written for other programs, and what others wrote read for the times that it blocks.

mod read;
mod write;

pub use read::{Occurrence, occurrences};
pub use write::{uid, write};

#[cfg(test)]
mod tests;
