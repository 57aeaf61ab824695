//! URI templates (RFC 6570 with its errata).

use super::uri_grammar::{is_iprivate, is_ucschar};
use crate::uri::has_valid_escapes;

pub fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    while let Some((literal, expression)) = rest.split_once('{') {
        let Some((expression, after)) = expression.split_once('}') else { return false };
        if !is_literal(literal) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    is_literal(rest)
}

fn is_literal(text: &str) -> bool {
    let allowed = |character: char| match character {
        '\0'..='\u{20}' | '\u{7f}' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => false,
        '!'..='~' => true,
        other => is_ucschar(other) || is_iprivate(other),
    };
    text.chars().all(allowed) && has_valid_escapes(text)
}

fn is_expression(text: &str) -> bool {
    let operators = ['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|'];
    text.strip_prefix(operators).unwrap_or(text).split(',').all(is_variable)
}

/// A variable name, with an optional prefix length (`:3`) or explode modifier (`*`).
fn is_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) => {
            let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            if !digits || length.len() > 4 || length.starts_with('0') {
                return false;
            }
            name
        }
        None => text.strip_suffix('*').unwrap_or(text),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'%';
    name.split('.').all(|part| !part.is_empty() && part.bytes().all(allowed)) && has_valid_escapes(name)
}
