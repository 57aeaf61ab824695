//! Where `audit.log` of handlers goes. The default is the log.

use std::fmt::Debug;

use serde_json::Value;

/// An entry that a handler adds to its call's record.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub client_id: &'a str,
    pub tool: &'a str,
    pub tool_version: &'a str,
    pub execution_id: &'a str,
    pub event: &'a str,
    pub data: &'a Value,
}

/// Keeps entries. It must not block: handlers wait for it.
pub trait Audit: Send + Sync + Debug {
    fn log(&self, entry: &Entry<'_>);
}

/// Writes entries to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log;

impl Audit for Log {
    fn log(&self, entry: &Entry<'_>) {
        let Entry { client_id, tool, execution_id, event, data, .. } = entry;
        tracing::info!(target: "toolwright::audit", client_id, tool, execution_id, event, %data);
    }
}
