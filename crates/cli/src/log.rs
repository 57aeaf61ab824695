//! The log on stderr. `TOOLWRIGHT_LOG` sets its level.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const LEVEL_VARIABLE: &str = "TOOLWRIGHT_LOG";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// Starts the log of a command, without times. The default level is `warn`.
pub fn start() {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(anstream::stderr);
    log.with_target(false).without_time().finish().with(levels(LevelFilter::WARN)).init();
}

/// Starts the log of a server, with times. The default level is `info`.
pub fn start_server(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(anstream::stderr);
    let levels = levels(LevelFilter::INFO);
    match format {
        LogFormat::Text => log.with_target(false).finish().with(levels).init(),
        LogFormat::Json => log.json().flatten_event(true).finish().with(levels).init(),
    }
}

/// The MCP library logs whole messages, which may contain `writeOnly` arguments: only its errors are logged.
fn levels(default: LevelFilter) -> Targets {
    let level = level(default);
    Targets::new().with_default(level).with_target("rmcp", level.min(LevelFilter::ERROR))
}

fn level(default: LevelFilter) -> LevelFilter {
    let Ok(word) = std::env::var(LEVEL_VARIABLE) else { return default };
    word.parse().unwrap_or_else(|_| {
        crate::output::warning(format_args!(
            "{LEVEL_VARIABLE} is {word:?}, which is not off, error, warn, info, debug or trace; using {default}"
        ));
        default
    })
}
