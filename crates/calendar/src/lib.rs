//! The calendar capability: free and busy times, drafts and events. Events are stored in a file or on a CalDAV server,
//! with conference links from a template or from Zoom.
//!
//! A crate of its own because of its dependencies (SQLite, time zones, iCalendar, XML). It must not know tools, models
//! or the JavaScript engine.

mod arguments;
mod backend;
mod caldav;
mod calendar;
mod commit;
mod event_list;
mod ics;
mod local_time;
mod output;
mod records;
mod remote_service;
mod settings;
mod slots;
mod span;
mod store;
mod zoom_client;

pub use calendar::{Calendar, SecretLookup};
pub use event_list::{EventList, EventRow};
pub use settings::Settings;
