//! The agent against a scripted model server that speaks the APIs of all providers, and misbehaves on demand.

#![allow(clippy::disallowed_methods, reason = "test code reads the environment and the clock")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "agent/approvals.rs"]
mod approvals;
#[path = "agent/background.rs"]
mod background;
#[path = "agent/failures.rs"]
mod failures;
#[path = "agent/limits.rs"]
mod limits;
#[path = "agent/offline.rs"]
mod offline;
#[path = "agent/replicas.rs"]
mod replicas;
#[path = "agent/resume.rs"]
mod resume;
#[path = "agent/same_tasks.rs"]
mod same_tasks;
#[path = "agent/scripted_model.rs"]
mod scripted_model;
#[path = "agent/scripted_voice.rs"]
mod scripted_voice;
#[path = "agent/support.rs"]
mod support;
#[path = "agent/transports.rs"]
mod transports;
#[path = "agent/turn_begin.rs"]
mod turn_begin;
#[path = "agent/voice.rs"]
mod voice;
#[path = "agent/voice_answers.rs"]
mod voice_answers;
#[path = "agent/voice_ends.rs"]
mod voice_ends;
#[path = "agent/voice_fixture.rs"]
mod voice_fixture;
#[path = "agent/voice_output.rs"]
mod voice_output;
#[path = "agent/waiting.rs"]
mod waiting;
#[path = "agent/wire_forms.rs"]
mod wire_forms;
