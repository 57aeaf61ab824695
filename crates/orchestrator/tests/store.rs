//! One suite that every store passes. Each rule of `store::Backend` is a sentence below; each back end is one line.
//!
//! # How to add a back end
//!
//! 1. A type in `store/` implements [`support::StoreFixture`]: `fresh` creates an empty store, `store` shares it. A
//!    back end that persists its records also implements [`support::Restart`]: `restart` drops the store without a
//!    flush, as a crash would, and opens what is left.
//! 2. Below: `conformance!(name, Type);` runs the rules of every store, `persistence!(name, Type);` those of stores
//!    that survive a restart. Every test calls `fresh`, and tests run in parallel: stores must not share anything.
//!
//! A rule is a generic function in one of the files that `store/conformance.rs` lists.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "store/audit_rules.rs"]
mod audit_rules;
#[path = "store/block_rules.rs"]
mod block_rules;
#[path = "store/claim_rules.rs"]
mod claim_rules;
#[path = "store/concurrency_rules.rs"]
mod concurrency_rules;
#[path = "store/confirmation_rules.rs"]
mod confirmation_rules;
#[macro_use]
#[path = "store/conformance.rs"]
mod conformance;
#[path = "store/conversation_rules.rs"]
mod conversation_rules;
#[path = "store/earlier_versions.rs"]
mod earlier_versions;
#[path = "store/history_rules.rs"]
mod history_rules;
#[path = "store/meter_rules.rs"]
mod meter_rules;
#[path = "store/minute_rules.rs"]
mod minute_rules;
#[path = "store/postgres_fencing.rs"]
mod postgres_fencing;
#[path = "store/postgres_outages.rs"]
mod postgres_outages;
#[path = "store/postgres_register.rs"]
mod postgres_register;
#[path = "store/postgres_replicas.rs"]
mod postgres_replicas;
#[path = "store/postgres_store.rs"]
mod postgres_store;
#[path = "store/rate_rules.rs"]
mod rate_rules;
#[path = "store/restart_rules.rs"]
mod restart_rules;
#[path = "store/retention_rules.rs"]
mod retention_rules;
#[path = "store/session_rules.rs"]
mod session_rules;
#[path = "store/sqlite_faults.rs"]
mod sqlite_faults;
#[path = "store/sqlite_files.rs"]
mod sqlite_files;
#[path = "store/sqlite_format.rs"]
mod sqlite_format;
#[path = "store/sqlite_killed.rs"]
mod sqlite_killed;
#[path = "store/sqlite_store.rs"]
mod sqlite_store;
#[path = "store/support.rs"]
mod support;
#[path = "store/task_rules.rs"]
mod task_rules;
#[path = "store/toolset_rules.rs"]
mod toolset_rules;

conformance!(memory, crate::support::MemoryStore);
conformance!(sqlite, crate::sqlite_store::SqliteStore);
persistence!(sqlite_restarted, crate::sqlite_store::SqliteStore);
conformance!(sqlite_without_cache, crate::sqlite_store::UncachedSqliteStore);
persistence!(sqlite_without_cache_restarted, crate::sqlite_store::UncachedSqliteStore);
conformance!(postgres, crate::postgres_store::PostgresStore);
persistence!(postgres_restarted, crate::postgres_store::PostgresStore);
