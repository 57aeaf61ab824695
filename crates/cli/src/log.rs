//! The log: to stderr, `TOOLWRIGHT_LOG` says how much. stdout is for data.

use tracing::level_filters::LevelFilter;

use crate::args::LogFormat;

const VARIABLE: &str = "TOOLWRIGHT_LOG";

/// Starts the log. Warnings and errors are written unless the environment asks for another level.
pub fn start() {
    let log =
        tracing_subscriber::fmt().with_max_level(level(LevelFilter::WARN)).with_writer(anstream::stderr);
    log.with_target(false).without_time().init();
}

/// Starts the log of a server, with times.
pub fn start_as(format: LogFormat) {
    let log =
        tracing_subscriber::fmt().with_max_level(level(LevelFilter::INFO)).with_writer(anstream::stderr);
    match format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

fn level(default: LevelFilter) -> LevelFilter {
    let asked = std::env::var(VARIABLE).ok();
    let level = asked.as_deref().map_or(Some(default), |word| word.parse().ok());
    level.unwrap_or_else(|| {
        crate::output::message(format_args!(
            "\x1b[1;33mwarning\x1b[0m: {VARIABLE} is not off, error, warn, info, debug or trace; {default} is used"
        ));
        default
    })
}
