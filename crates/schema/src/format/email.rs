//! E-mail addresses: the mailbox of RFC 5321, and of RFC 6531 with letters of all scripts. A domain has at least
//! two labels, as in Ajv.

use super::{host, idn};

pub fn is_email(text: &str) -> bool {
    is_mailbox(text, false, host::has_two_labels)
}

pub fn is_idn_email(text: &str) -> bool {
    let domain = |text: &str| {
        if text.is_ascii() { host::has_two_labels(text) } else { idn::is_lookup_name(text) }
    };
    is_mailbox(text, true, domain)
}

/// `allows_unicode`: whether the local part may hold characters beyond ASCII.
fn is_mailbox(text: &str, allows_unicode: bool, is_domain: fn(&str) -> bool) -> bool {
    let domain = match text.strip_prefix('"') {
        Some(quoted) => after_quotes(quoted, allows_unicode).and_then(|rest| rest.strip_prefix('@')),
        None => {
            let parts = text.split_once('@');
            parts.filter(|(local, _)| is_dot_string(local, allows_unicode)).map(|(_, domain)| domain)
        }
    };
    domain.is_some_and(|domain| match domain.strip_prefix('[') {
        Some(literal) => literal.strip_suffix(']').is_some_and(is_address_literal),
        None => is_domain(domain),
    })
}

fn is_dot_string(local: &str, allows_unicode: bool) -> bool {
    let is_allowed = |byte: u8| is_atom(byte) || (allows_unicode && !byte.is_ascii());
    local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_allowed))
}

/// A character of an RFC 5321 `Atom`.
fn is_atom(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'/' | b'=' | b'?')
        || matches!(byte, b'^'..=b'`' | b'{'..=b'~')
}

/// The text after the closing quote.
fn after_quotes(text: &str, allows_unicode: bool) -> Option<&str> {
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some(characters.as_str()),
            '\\' => {
                characters.next().filter(|escaped| matches!(escaped, ' '..='~'))?;
            }
            ' '..='~' => {}
            other if allows_unicode && !other.is_ascii() => {}
            _ => return None,
        }
    }
}

fn is_address_literal(literal: &str) -> bool {
    match literal.get(..5).filter(|tag| tag.eq_ignore_ascii_case("IPv6:")) {
        Some(tag) => literal.get(tag.len()..).is_some_and(host::is_ipv6),
        None => host::is_ipv4(literal),
    }
}
