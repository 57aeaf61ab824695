//! iCalendar (RFC 5545): writes events and reads busy times.

mod ics_reader;
#[cfg(test)]
mod ics_tests;
mod ics_writer;

pub use ics_reader::{Occurrence, occurrences};
pub use ics_writer::{uid, write};
