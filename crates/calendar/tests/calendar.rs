//! The calendar capability as a handler calls it: with its file alone, with a fake of Zoom's API, with a real Radicale
//! server, and in processes that are killed.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "calendar/at_most_once.rs"]
mod at_most_once;
#[path = "calendar/caldav_errors.rs"]
mod caldav_errors;
#[path = "calendar/crash.rs"]
mod crash;
#[path = "calendar/embedded.rs"]
mod embedded;
#[path = "calendar/export.rs"]
mod export;
#[path = "calendar/fake_zoom.rs"]
mod fake_zoom;
#[path = "calendar/python.rs"]
mod python;
#[path = "calendar/radicale.rs"]
mod radicale;
#[path = "calendar/support.rs"]
mod support;
#[path = "calendar/test_server.rs"]
mod test_server;
#[path = "calendar/zoom_meetings.rs"]
mod zoom_meetings;
