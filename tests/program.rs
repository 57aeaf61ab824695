//! Whole-program tests: the built `toolwright`, run as a person or a script would run it.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "program/audit.rs"]
mod audit;
#[path = "program/authoring.rs"]
mod authoring;
#[path = "program/bad_files.rs"]
mod bad_files;
#[path = "program/bad_output.rs"]
mod bad_output;
#[path = "program/bad_schema.rs"]
mod bad_schema;
#[path = "program/beside_server.rs"]
mod beside_server;
#[path = "program/build.rs"]
mod build;
#[path = "program/builtins.rs"]
mod builtins;
#[path = "program/cache.rs"]
mod cache;
#[path = "program/calendar.rs"]
mod calendar;
#[path = "program/call.rs"]
mod call;
#[path = "program/chat.rs"]
mod chat;
#[path = "program/chat_terminal.rs"]
mod chat_terminal;
#[path = "program/codes.rs"]
mod codes;
#[path = "program/config.rs"]
mod config;
#[path = "program/declared.rs"]
mod declared;
#[path = "program/deploys.rs"]
mod deploys;
#[path = "program/determinism.rs"]
mod determinism;
#[path = "program/doctor.rs"]
mod doctor;
#[path = "program/editor_types.rs"]
mod editor_types;
#[path = "program/fences.rs"]
mod fences;
#[path = "program/fields.rs"]
mod fields;
#[path = "program/imports.rs"]
mod imports;
#[path = "program/inspect.rs"]
mod inspect;
#[path = "program/interrupted.rs"]
mod interrupted;
#[path = "program/kb.rs"]
mod kb;
#[path = "program/kb_model.rs"]
mod kb_model;
#[path = "program/mcp.rs"]
mod mcp;
#[path = "program/reference.rs"]
mod reference;
#[path = "program/reload.rs"]
mod reload;
#[path = "program/scaffold.rs"]
mod scaffold;
#[path = "program/schema.rs"]
mod schema;
#[allow(dead_code, reason = "shared with the tests of the server")]
#[path = "../crates/server/tests/server/scripted_model.rs"]
mod scripted_model;
#[path = "program/serve.rs"]
mod serve;
#[path = "program/sessions.rs"]
mod sessions;
#[path = "program/support.rs"]
mod support;
#[path = "program/tasks.rs"]
mod tasks;
#[path = "program/thirty_mistakes.rs"]
mod thirty_mistakes;
#[path = "program/tidy.rs"]
mod tidy;
#[path = "program/tool_tests.rs"]
mod tool_tests;
#[path = "program/usage.rs"]
mod usage;
#[path = "program/version.rs"]
mod version;
#[path = "program/watch.rs"]
mod watch;
