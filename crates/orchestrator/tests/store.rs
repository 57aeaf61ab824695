//! One suite that every store passes. Each rule of `store::Backend` is a sentence below; each back end is one line.
//!
//! # How a back end plugs in
//!
//! 1. A type in `store/` implements [`harness::Harness`]: `fresh` gives an empty store, `store` shares it. A back end
//!    that keeps things beyond its process also implements [`harness::Reopen`]: `reopen` drops the store without
//!    flushing, as a crash would, and opens what it left.
//! 2. Below: `conformance!(name, Type);` runs the rules of every store, `reopening!(name, Type);` those of stores that
//!    come back. Every test calls `fresh` for itself, and tests run side by side: stores must not see each other.
//!
//! A rule is a generic function in one of the files that `store/rules.rs` lists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "store/audit.rs"]
mod audit;
#[path = "store/claims.rs"]
mod claims;
#[path = "store/confirmations.rs"]
mod confirmations;
#[path = "store/faults.rs"]
mod faults;
#[path = "store/files.rs"]
mod files;
#[path = "store/forms.rs"]
mod forms;
#[path = "store/harness.rs"]
mod harness;
#[path = "store/postgres.rs"]
mod in_postgres;
#[path = "store/killed.rs"]
mod killed;
#[path = "store/on_disk.rs"]
mod on_disk;
#[path = "store/outages.rs"]
mod outages;
#[path = "store/racing.rs"]
mod racing;
#[path = "store/reopened.rs"]
mod reopened;
#[path = "store/replicas.rs"]
mod replicas;
#[path = "store/retention.rs"]
mod retention;
#[macro_use]
#[path = "store/rules.rs"]
mod rules;
#[path = "store/sessions.rs"]
mod sessions;

conformance!(memory, crate::harness::InMemory);
conformance!(sqlite, crate::on_disk::OnDisk);
reopening!(sqlite_reopened, crate::on_disk::OnDisk);
conformance!(sqlite_with_nothing_in_memory, crate::on_disk::Forgetful);
reopening!(sqlite_with_nothing_in_memory_reopened, crate::on_disk::Forgetful);
conformance!(postgres, crate::in_postgres::InPostgres);
reopening!(postgres_reopened, crate::in_postgres::InPostgres);
