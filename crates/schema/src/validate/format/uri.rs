//! URIs and IRIs with their references: the grammars of RFC 3986 and RFC 3987.

use super::net;

pub fn is_uri(text: &str) -> bool {
    before_colon(text).is_some_and(|(scheme, rest)| is_scheme(scheme) && is_rest(rest, &ASCII))
}

pub fn is_iri(text: &str) -> bool {
    before_colon(text).is_some_and(|(scheme, rest)| is_scheme(scheme) && is_rest(rest, &UNICODE))
}

pub fn is_uri_reference(text: &str) -> bool {
    is_reference(text, &ASCII)
}

pub fn is_iri_reference(text: &str) -> bool {
    is_reference(text, &UNICODE)
}

fn is_reference(text: &str, beyond: &Beyond) -> bool {
    match before_colon(text) {
        Some((scheme, rest)) => is_scheme(scheme) && is_rest(rest, beyond),
        None => is_rest(text, beyond),
    }
}

/// Parts at a colon in the first segment, where it can only end a scheme.
fn before_colon(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'))?;
    text.get(end..)?.strip_prefix(':').and_then(|rest| Some((text.get(..end)?, rest)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Which characters beyond ASCII are taken, in general and in the query.
struct Beyond {
    anywhere: fn(char) -> bool,
    query: fn(char) -> bool,
}

static ASCII: Beyond = Beyond { anywhere: |_| false, query: |_| false };
static UNICODE: Beyond =
    Beyond { anywhere: is_ucschar, query: |character| is_ucschar(character) || is_iprivate(character) };

pub fn is_ucschar(character: char) -> bool {
    match u32::from(character) {
        0xa0..=0xd7ff | 0xf900..=0xfdcf | 0xfdf0..=0xffef | 0xe1000..=0xefffd => true,
        // All of the planes between but their last two code points; tags and the like stay out.
        other @ 0x10000..=0xdffff => other & 0xffff <= 0xfffd,
        _ => false,
    }
}

pub fn is_iprivate(character: char) -> bool {
    matches!(u32::from(character), 0xe000..=0xf8ff | 0xf0000..=0xffffd | 0x0010_0000..=0x0010_fffd)
}

/// All that may follow a scheme.
fn is_rest(text: &str, beyond: &Beyond) -> bool {
    let (text, fragment) = cut(text, b'#').unwrap_or((text, ""));
    let (text, query) = cut(text, b'?').unwrap_or((text, ""));
    let (authority, path) = match text.strip_prefix("//") {
        Some(after) => cut(after, b'/').unwrap_or((after, "")),
        None => ("", text),
    };
    is_authority(authority, beyond)
        && has_only(path, NAME | COLON | AT | SLASH, beyond.anywhere)
        && has_only(query, NAME | COLON | AT | SLASH | QUESTION, beyond.query)
        && has_only(fragment, NAME | COLON | AT | SLASH | QUESTION, beyond.anywhere)
}

/// What stands before and after a character; addresses are too short for a search engine to pay.
fn cut(text: &str, mark: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == mark)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

fn is_authority(text: &str, beyond: &Beyond) -> bool {
    let (user, host) = cut(text, b'@').unwrap_or(("", text));
    let (host_is_right, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((literal, port)) => (is_literal(literal), port),
        None => {
            let colon = host.bytes().position(|byte| byte == b':');
            let (name, port) = colon.map_or((host, ""), |colon| host.split_at(colon));
            (has_only(name, NAME, beyond.anywhere), port)
        }
    };
    let port_is_right = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    host_is_right && port_is_right && has_only(user, NAME | COLON, beyond.anywhere)
}

/// An address in brackets.
fn is_literal(text: &str) -> bool {
    let Some(future) = text.strip_prefix(['v', 'V']) else { return net::is_ipv6(text) };
    future.split_once('.').is_some_and(|(version, name)| {
        let version_is_right = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        // A percent sign is the one thing in a name that has no place here.
        version_is_right && !name.is_empty() && !name.contains('%') && has_only(name, NAME | COLON, |_| false)
    })
}

const NAME: u8 = 1;
const COLON: u8 = 2;
const AT: u8 = 4;
const SLASH: u8 = 8;
const QUESTION: u8 = 16;

static CLASSES: [u8; 128] = {
    let mut table = [0; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = class(byte);
        byte += 1;
    }
    table
};

const fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => NAME,
        b'-' | b'.' | b'_' | b'~' => NAME,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => NAME,
        b':' => COLON,
        b'@' => AT,
        b'/' => SLASH,
        b'?' => QUESTION,
        _ => 0,
    }
}

fn has_only(text: &str, classes: u8, beyond: fn(char) -> bool) -> bool {
    let is_plain = |byte: u8| CLASSES.get(usize::from(byte)).is_some_and(|class| class & classes != 0);
    if text.bytes().all(is_plain) {
        return true;
    }
    let allowed = |character: char| match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() => byte == b'%' || is_plain(byte),
        _ => beyond(character),
    };
    text.chars().all(allowed) && percents_are_right(text)
}

pub fn percents_are_right(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())))
}
