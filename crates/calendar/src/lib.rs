//! The calendar capability: free and taken times, drafts, events; embedded in a file by default, on a CalDAV server by
//! configuration, with conference links from a template or from Zoom.
//!
//! A crate of its own for what it brings along (SQLite, the rules of all time zones, iCalendar, XML), so that the inner
//! loop of the other capabilities stays short. It must not know tools, models or the JavaScript engine.

mod answer;
mod asked;
mod back;
mod busy;
mod caldav;
mod calendar;
mod commit;
mod ics;
mod listing;
mod records;
mod service;
mod settings;
mod slots;
mod store;
mod zone;
mod zoom;

pub use calendar::{Calendar, Secrets};
pub use listing::{Listed, Listing};
pub use settings::Settings;
