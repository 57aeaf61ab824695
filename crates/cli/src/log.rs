//! The log on stderr. `TOOLWRIGHT_LOG` sets its level.

use std::io::{self, Write};
use std::sync::Arc;

use anstream::ColorChoice;
use clap::ValueEnum;
use toolwright_contract::escape::{escape, escape_lines};
use toolwright_orchestrator::CALL_LOG;
use toolwright_server::LogBuffer;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, FormatFields};
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
    let log = log.fmt_fields(escaped_fields()).with_target(false).without_time();
    log.finish().with(levels(LevelFilter::WARN)).init();
}

/// Starts the log of a server, with times. The default level is `info`.
pub fn start_server(format: LogFormat, lines: &Arc<LogBuffer>) {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
    let levels = levels(LevelFilter::INFO);
    let lines = ServerLog(Arc::clone(lines));
    match format {
        LogFormat::Text => {
            // Found out once, not for each line.
            let has_colours = anstream::stderr().current_choice() != ColorChoice::Never;
            let log = log.with_writer(lines).with_ansi(has_colours).fmt_fields(escaped_fields());
            log.with_target(false).finish().with(levels).init();
        }
        LogFormat::Json => {
            let log = log.with_writer(JsonServerLog(lines));
            log.json().flatten_event(true).finish().with(levels).init();
        }
    }
}

/// The log of a server. The lines of calls are buffered; every other one is written at once, after them.
struct ServerLog(Arc<LogBuffer>);

struct ServerLine {
    lines: Arc<LogBuffer>,
    is_buffered: bool,
}

impl<'a> MakeWriter<'a> for ServerLog {
    type Writer = ServerLine;

    fn make_writer(&'a self) -> ServerLine {
        ServerLine { lines: Arc::clone(&self.0), is_buffered: false }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> ServerLine {
        ServerLine { is_buffered: event.target() == CALL_LOG, ..self.make_writer() }
    }
}

/// The same with [`EscapedJson`].
struct JsonServerLog(ServerLog);

impl<'a> MakeWriter<'a> for JsonServerLog {
    type Writer = EscapedJson<ServerLine>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedJson(self.0.make_writer())
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Self::Writer {
        EscapedJson(self.0.make_writer_for(event))
    }
}

impl Write for ServerLine {
    /// The log writes whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.is_buffered {
            self.lines.add(line)
        } else {
            self.lines.write(line)
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `message name=value …`, on one line: a message of a handler or of another server must not be able to forge a line.
fn escaped_fields() -> impl for<'w> FormatFields<'w> + 'static {
    let fields = format::debug_fn(|writer, field, value| {
        let text = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", escape(&text)),
            name => write!(writer, "{name}={}", escape(&text)),
        }
    });
    fields.delimited(" ")
}

/// Writes JSON lines. JSON itself escapes only some of the characters that can forge or hide text.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    /// The log writes whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(escape_lines(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn log() {
        let outside = "one\nWARN forged \u{1b}[2J\u{9b}\u{202e}end";
        tracing::info!(tool = outside, count = 3, "from outside: {outside}");
    }

    #[test]
    fn a_text_line_cannot_be_forged() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log_format = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        let subscriber = log_format.fmt_fields(escaped_fields()).with_target(false).without_time().finish();
        tracing::subscriber::with_default(subscriber, log);
        let escaped = r"one\nWARN forged \u001b[2J\u009b\u202eend";
        let text = lines.text();
        assert!(text.starts_with(&format!(" INFO from outside: {escaped} tool=\"one\\nWARN")), "{text}");
        assert!(text.ends_with(" count=3\n") && text.lines().count() == 1, "{text}");
        assert!(!text.trim_end().contains(toolwright_contract::escape::is_hidden), "{text}");
    }

    #[test]
    fn a_json_line_has_no_hidden_characters() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log_format = tracing_subscriber::fmt().with_writer(move || EscapedJson(writer.clone()));
        tracing::subscriber::with_default(log_format.json().flatten_event(true).finish(), log);
        let text = lines.text();
        assert!(!text.trim_end().contains(toolwright_contract::escape::is_hidden), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["tool"], "one\nWARN forged \u{1b}[2J\u{9b}\u{202e}end");
    }
}
