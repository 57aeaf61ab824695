//! What the configuration sets up for handlers, a line a capability. Each opens its back end when it is first asked:
//! most commands ask for none.

use toolwright_orchestrator::capabilities::Capabilities;

use crate::config::Config;

/// The capabilities of one process, shared by all toolsets that it loads.
pub fn set_up(_config: &Config) -> Capabilities {
    Capabilities::default()
}
