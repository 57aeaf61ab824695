//! The two streams: stdout for data, stderr for messages. Colours only reach a terminal.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// A failure with a way out.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub help: String,
    /// 1, or 2 when the command was used wrongly.
    pub code: u8,
}

impl Failure {
    /// Something is wrong with what the command works on.
    pub fn new(message: impl Display, help: impl Display) -> Self {
        Self { message: message.to_string(), help: help.to_string(), code: 1 }
    }

    /// The command was used wrongly.
    pub fn usage(message: impl Display, help: impl Display) -> Self {
        Self { code: 2, ..Self::new(message, help) }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Why data could not be written, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints data. A reader that has gone away (`| head`) is no failure; a full disk is, and [`finish`] says so.
pub fn data(text: impl Display) {
    let mut stdout = anstream::stdout().lock();
    if let Err(error) = write!(stdout, "{text}").and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error.to_string());
    }
}

/// The exit code of a command that gave `code`, unless its data did not get through.
pub fn finish(code: ExitCode) -> ExitCode {
    match LOST.get() {
        None => code,
        Some(error) => fail(
            &Failure::new(format!("cannot write to stdout: {error}"), "make room, or write elsewhere").into(),
        ),
    }
}

/// Prints one line of data.
pub fn data_line(text: impl Display) {
    data(format_args!("{text}\n"));
}

/// A text that may come from a model: nothing in it may speak to the terminal, or turn around what stands beside it.
pub fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { '�' } else { c }).collect()
}

/// Prints a message for people.
pub fn message(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints why the command failed, and gives its exit code.
pub fn fail(error: &anyhow::Error) -> ExitCode {
    message(format_args!("\x1b[1;31merror\x1b[0m: {error}"));
    for cause in error.chain().skip(1) {
        message(format_args!("  because: {cause}"));
    }
    match error.downcast_ref::<Failure>() {
        Some(failure) => {
            message(format_args!("  \x1b[1mhelp\x1b[0m: {}", failure.help));
            ExitCode::from(failure.code)
        }
        None => ExitCode::FAILURE,
    }
}
