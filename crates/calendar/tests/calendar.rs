//! The calendar through its door, as a handler asks: in its file, with a stand-in for Zoom's API on loopback, with a real
//! Radicale server, and in processes that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "calendar/crash.rs"]
mod crash;
#[path = "calendar/desk.rs"]
mod desk;
#[path = "calendar/embedded.rs"]
mod embedded;
#[path = "calendar/export.rs"]
mod export;
#[path = "calendar/faults.rs"]
mod faults;
#[path = "calendar/loopback.rs"]
mod loopback;
#[path = "calendar/once.rs"]
mod once;
#[path = "calendar/python.rs"]
mod python;
#[path = "calendar/radicale.rs"]
mod radicale;
#[path = "calendar/zoom.rs"]
mod zoom;
#[path = "calendar/zoom_api.rs"]
mod zoom_api;
