//! URIs and IRIs with their references, and URI templates: the grammars of RFC 3986, RFC 3987 and RFC 6570.

use super::host;
use crate::uri::has_valid_escapes;

pub fn is_uri(text: &str, non_ascii: &NonAscii) -> bool {
    split_scheme(text).is_some() && is_reference(text, non_ascii)
}

pub fn is_reference(text: &str, non_ascii: &NonAscii) -> bool {
    match split_scheme(text) {
        Some((scheme, rest)) => is_scheme(scheme) && is_hierarchy(rest, non_ascii),
        None => is_hierarchy(text, non_ascii),
    }
}

/// Splits at a colon in the first segment, which can only end a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'))?;
    text.get(end..)?.strip_prefix(':').and_then(|rest| Some((text.get(..end)?, rest)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Which characters beyond ASCII are allowed: in general and in the query.
pub struct NonAscii {
    anywhere: fn(char) -> bool,
    query: fn(char) -> bool,
}

pub static ASCII: NonAscii = NonAscii { anywhere: |_| false, query: |_| false };
pub static UNICODE: NonAscii =
    NonAscii { anywhere: is_ucschar, query: |character| is_ucschar(character) || is_iprivate(character) };

fn is_ucschar(character: char) -> bool {
    match u32::from(character) {
        0xa0..=0xd7ff | 0xf900..=0xfdcf | 0xfdf0..=0xffef | 0xe1000..=0xefffd => true,
        // The planes between, without their last two code points; plane 14 starts with tags, which are not allowed.
        other @ 0x10000..=0xdffff => other & 0xffff <= 0xfffd,
        _ => false,
    }
}

fn is_iprivate(character: char) -> bool {
    matches!(u32::from(character), 0xe000..=0xf8ff | 0xf0000..=0xffffd | 0x0010_0000..=0x0010_fffd)
}

/// Authority, path, query and fragment.
fn is_hierarchy(text: &str, non_ascii: &NonAscii) -> bool {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (authority, path) = match text.strip_prefix("//") {
        Some(after) => after.split_once('/').unwrap_or((after, "")),
        None => ("", text),
    };
    is_authority(authority, non_ascii)
        && has_only(path, ":@/", non_ascii.anywhere)
        && has_only(query, ":@/?", non_ascii.query)
        && has_only(fragment, ":@/?", non_ascii.anywhere)
}

fn is_authority(text: &str, non_ascii: &NonAscii) -> bool {
    let (user, host) = text.split_once('@').unwrap_or(("", text));
    let (is_host, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((literal, port)) => (is_ip_literal(literal), port),
        None => {
            let (name, port) = host.find(':').map_or((host, ""), |colon| host.split_at(colon));
            (has_only(name, "", non_ascii.anywhere), port)
        }
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_host && is_port && has_only(user, ":", non_ascii.anywhere)
}

/// An address in brackets: `IPv6address` or `IPvFuture`.
fn is_ip_literal(text: &str) -> bool {
    let Some(future) = text.strip_prefix(['v', 'V']) else { return host::is_ipv6(text) };
    future.split_once('.').is_some_and(|(version, name)| {
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        // A name may hold percent escapes, an IP literal may not.
        is_version && !name.is_empty() && !name.contains('%') && has_only(name, ":", |_| false)
    })
}

/// Whether a text consists of percent escapes and of characters that are unreserved, sub-delimiters, `others` or,
/// beyond ASCII, allowed by `non_ascii`.
fn has_only(text: &str, others: &str, non_ascii: fn(char) -> bool) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=".contains(&byte)
            || others.as_bytes().contains(&byte)
    };
    let allowed = |character: char| match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() => byte == b'%' || is_plain(byte),
        _ => non_ascii(character),
    };
    text.bytes().all(is_plain) || (text.chars().all(allowed) && has_valid_escapes(text))
}

/// A URI template (RFC 6570 with its errata).
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
