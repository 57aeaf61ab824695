//! The two streams: stdout for data, stderr for messages. Colours only reach a terminal.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Result;
use serde::Serialize;
use toolwright_contract::escape::{escape, escape_lines, is_hidden};

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
    let text = text.to_string();
    // A pipe or file gets the data as it is.
    let text = if io::stdout().is_terminal() { for_terminal(&text) } else { text.into() };
    let mut stdout = anstream::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = WRITE_ERROR.set(error.to_string());
    }
}

/// Prints one line of data.
pub fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints rows under a header; columns are as wide as their longest cell.
pub fn print_table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(header[column].len())
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    print_line(format_args!("\x1b[1m{}\x1b[0m", line(header)));
    for row in &rows {
        print_line(line(row.each_ref().map(String::as_str)));
    }
}

/// Prints a value as one line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(escape(&serde_json::to_string(value)?));
    Ok(())
}

/// Prints a value as indented JSON.
pub fn print_json_pretty(value: &impl Serialize) -> Result<()> {
    print_line(escape_lines(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// Prints a message for people.
pub fn message(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", for_terminal(&text.to_string()));
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

/// Escapes all control characters and bidirectional controls but line feeds, tabs and the sequences that set colours.
/// Commands escape texts from outside with [`escape`]; this is for those that reach a message by another way, such as
/// the error of a server.
fn for_terminal(text: &str) -> Cow<'_, str> {
    let is_safe = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = colour_length(rest);
        let (part, after) = rest.split_at(colour.unwrap_or(character.len_utf8()));
        safe += &*if colour.is_some() || is_safe(character) { Cow::Borrowed(part) } else { escape(part) };
        rest = after;
    }
    Cow::Owned(safe)
}

/// The length of the sequence that sets a colour, if the text begins with one: `ESC [ digits m`.
fn colour_length(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    codes[end..].starts_with('m').then_some(end + 3)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_colours_and_lines_but_no_other_control() {
        let cases = [
            ("\x1b[1;31merror\x1b[0m: no\n\ttool", "\x1b[1;31merror\x1b[0m: no\n\ttool"),
            ("\x1b[2J\x1b]0;title\x07 größe", "\\u001b[2J\\u001b]0;title\\u0007 größe"),
            ("a\u{202e}b\r\u{9b}31m \x1b[", "a\\u202eb\\r\\u009b31m \\u001b["),
        ];
        for (text, expected) in cases {
            assert_eq!(for_terminal(text), expected);
        }
    }
}
