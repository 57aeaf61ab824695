//! Connections to a PostgreSQL database: its address and encryption, pools, errors, and migrations of a schema.
//!
//! This crate knows nothing of what is stored there. Each user has its own schema, with its own migrations.

mod address;
mod connection;
mod error;
mod migrations;
mod pool;

pub use address::Address;
pub use connection::{Connection, Parameters};
pub use error::Error;
pub use migrations::{check, migrate};
pub use pool::{Pool, Settings};

/// Implements `Debug` without fields: an address may contain a password.
macro_rules! opaque_debug {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

opaque_debug!(Address, Connection, Pool);
