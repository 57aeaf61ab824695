//! A client of the voice protocol without microphone and speaker: a recording is sent, and the played audio is
//! returned. Prints nothing.

mod connection;
mod conversation;
mod message;
mod playback;
mod wav;

pub use connection::Target;
pub use conversation::{Confirm, Event, Outcome, Script, converse};
pub use wav::Recording;
