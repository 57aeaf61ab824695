//! The two streams: stdout for data, stderr for messages. Colours only reach a terminal.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Result;
use serde::Serialize;

/// An error with a suggested fix.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub help: String,
    /// The exit code: 1, or 2 if the command was used wrongly.
    pub code: u8,
}

impl Failure {
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

/// The first error of a write to stdout.
static WRITE_ERROR: OnceLock<String> = OnceLock::new();

/// Prints data. A closed pipe (`| head`) is not an error; a full disk is, and [`exit_code`] reports it.
pub fn print(text: impl Display) {
    let mut stdout = anstream::stdout().lock();
    if let Err(error) = write!(stdout, "{text}").and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = WRITE_ERROR.set(error.to_string());
    }
}

/// Prints one line of data.
pub fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints a value as one line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(serde_json::to_string(value)?);
    Ok(())
}

/// Prints a value as indented JSON.
pub fn print_json_pretty(value: &impl Serialize) -> Result<()> {
    print_line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a message for people.
pub fn message(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints a message that begins with a green word, such as `created`.
pub fn success(word: &str, text: impl Display) {
    message(format_args!("\x1b[1;32m{word}\x1b[0m {text}"));
}

pub fn warning(text: impl Display) {
    message(format_args!("\x1b[1;33mwarning\x1b[0m: {text}"));
}

pub fn error(text: impl Display) {
    message(format_args!("\x1b[1;31merror\x1b[0m: {text}"));
}

pub fn help(text: impl Display) {
    message(format_args!("  \x1b[1mhelp\x1b[0m: {text}"));
}

/// Makes a text of a model safe to print: replaces control characters and bidirectional overrides.
pub fn sanitize(text: &str) -> String {
    let is_override = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || is_override(c) { '�' } else { c }).collect()
}

/// Prints why the command failed, and returns its exit code.
pub fn report(failed: &anyhow::Error) -> ExitCode {
    error(failed);
    for cause in failed.chain().skip(1) {
        message(format_args!("  because: {cause}"));
    }
    match failed.downcast_ref::<Failure>() {
        Some(failure) => {
            help(&failure.help);
            ExitCode::from(failure.code)
        }
        None => ExitCode::FAILURE,
    }
}

/// 0 or 1.
pub fn status(is_ok: bool) -> ExitCode {
    if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The exit code of the process: the command's, unless its data could not be written.
pub fn exit_code(code: ExitCode) -> ExitCode {
    match WRITE_ERROR.get() {
        None => code,
        Some(error) => {
            let message = format!("cannot write to stdout: {error}");
            report(&Failure::new(message, "free some space, or redirect the output elsewhere").into())
        }
    }
}
