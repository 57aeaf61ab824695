//! The log: to stderr, `TOOLWRIGHT_LOG` says how much. stdout is for data.

use tracing::level_filters::LevelFilter;

const VARIABLE: &str = "TOOLWRIGHT_LOG";

/// Starts the log. Warnings and errors are written unless the environment asks for another level.
pub fn start() {
    let level = std::env::var(VARIABLE).ok().and_then(|word| word.parse().ok()).unwrap_or(LevelFilter::WARN);
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(anstream::stderr)
        .with_target(false)
        .without_time()
        .init();
}
