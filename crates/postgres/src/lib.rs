//! What every user of a PostgreSQL database needs before it can say anything: where the database is and how the way to
//! it is encrypted, a few connections that replace themselves, how a statement fails, and which version a schema has.
//!
//! It knows nothing of what is kept there. Each user has a schema of its own, with its own migrations.

mod address;
mod failure;
mod migrations;
mod pool;

pub use address::Address;
pub use failure::Failure;
pub use migrations::{check, migrate};
pub use pool::{Borrowed, Connection, Connector, Parameters, Pool, Settings};

/// What holds an address shows nothing of itself: there may be a password in it.
macro_rules! is_opaque {
    ($($name:ident $(<$lifetime:lifetime>)?),*) => {$(
        impl std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

is_opaque!(Address, Connector, Connection, Pool, Borrowed<'_>);
