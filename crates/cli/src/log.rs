//! The log: to stderr, `TOOLWRIGHT_LOG` says how much. stdout is for data.

use tracing::level_filters::LevelFilter;

const VARIABLE: &str = "TOOLWRIGHT_LOG";

/// Starts the log. Warnings and errors are written unless the environment asks for another level.
pub fn start() {
    let asked = std::env::var(VARIABLE).ok();
    let level = asked.as_deref().map_or(Some(LevelFilter::WARN), |word| word.parse().ok());
    if level.is_none() {
        crate::output::message(format_args!(
            "\x1b[1;33mwarning\x1b[0m: {VARIABLE} is not off, error, warn, info, debug or trace; warn is used"
        ));
    }
    let level = level.unwrap_or(LevelFilter::WARN);
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(anstream::stderr)
        .with_target(false)
        .without_time()
        .init();
}
