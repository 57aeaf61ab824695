//! A tool's own tests: `tests/*.json`, run against its real handler with stubbed capabilities.

mod case;
mod matcher;
mod stub;
mod test_run;

pub use case::{Case, Error};
pub use test_run::{Report, run};
