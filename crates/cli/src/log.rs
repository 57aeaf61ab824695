//! The log: to stderr, `TOOLWRIGHT_LOG` says how much. stdout is for data.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;

const VARIABLE: &str = "TOOLWRIGHT_LOG";

/// Starts the log. Warnings and errors are written unless the environment asks for another level.
pub fn start() {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(anstream::stderr);
    log.with_target(false).without_time().finish().with(wanted(LevelFilter::WARN)).init();
}

/// Starts the log of a server, with times.
pub fn start_as(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(anstream::stderr);
    let wanted = wanted(LevelFilter::INFO);
    match format {
        LogFormat::Text => log.with_target(false).finish().with(wanted).init(),
        LogFormat::Json => log.json().flatten_event(true).finish().with(wanted).init(),
    }
}

/// The MCP library writes whole messages to its log: arguments that must not be kept would be in it.
fn wanted(default: LevelFilter) -> Targets {
    let level = level(default);
    Targets::new().with_default(level).with_target("rmcp", level.min(LevelFilter::ERROR))
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
