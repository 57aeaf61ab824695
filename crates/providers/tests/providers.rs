//! Views and codecs through the public API: snapshots, streams split at every position, random input, public corpora.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "providers/corpora.rs"]
mod corpora;
#[path = "providers/random_input.rs"]
mod random_input;
#[path = "providers/results.rs"]
mod results;
#[path = "providers/streams.rs"]
mod streams;
#[path = "providers/views.rs"]
mod views;

use std::path::{Path, PathBuf};

use toolwright_contract::ToolSpec;
use toolwright_providers::Provider;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn tools() -> Vec<ToolSpec> {
    serde_json::from_str(&std::fs::read_to_string(fixture("tools.json")).unwrap()).unwrap()
}

fn tool(name: &str) -> ToolSpec {
    tools().into_iter().find(|tool| tool.tool_id == name).unwrap()
}

fn provider(name: &str) -> &'static Provider {
    toolwright_providers::provider(name).unwrap()
}
