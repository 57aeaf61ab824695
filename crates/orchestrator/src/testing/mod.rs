//! A tool's own tests: `tests/*.json`, run against its real handler with stubbed capabilities.

mod case;
mod matcher;
mod test_run;
mod stub;

pub use case::{Case, Error};
pub use test_run::{Report, run};
