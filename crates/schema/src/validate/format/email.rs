//! E-mail addresses: the mailbox of RFC 5321, and of RFC 6531 with letters of all scripts. A domain has at least
//! two labels, as in Ajv: a name without a dot is more often a mistake than a host.

use super::{idn, net};

pub fn is_email(text: &str) -> bool {
    is_mailbox(text, false, net::has_two_labels)
}

pub fn is_idn_email(text: &str) -> bool {
    let domain = |text: &str| {
        if text.is_ascii() { net::has_two_labels(text) } else { idn::is_lookup_name(text) }
    };
    is_mailbox(text, true, domain)
}

/// `beyond` says whether characters beyond ASCII may stand in the local part.
fn is_mailbox(text: &str, beyond: bool, is_domain: fn(&str) -> bool) -> bool {
    let domain = match text.strip_prefix('"') {
        Some(quoted) => after_quotes(quoted, beyond).and_then(|rest| rest.strip_prefix('@')),
        None => {
            let at = text.bytes().position(|byte| byte == b'@');
            at.filter(|at| text.get(..*at).is_some_and(|local| is_dotted(local, beyond)))
                .and_then(|at| text.get(at + 1..))
        }
    };
    domain.is_some_and(|domain| match domain.strip_prefix('[') {
        Some(literal) => literal.strip_suffix(']').is_some_and(is_address),
        None => is_domain(domain),
    })
}

fn is_dotted(local: &str, beyond: bool) -> bool {
    let mut at_start = true;
    for byte in local.bytes() {
        let is_dot = byte == b'.';
        let is_atom = ATOM[usize::from(byte)] || (beyond && !byte.is_ascii());
        if !is_atom && (!is_dot || at_start) {
            return false;
        }
        at_start = is_dot;
    }
    !at_start
}

/// What may stand between dots, of ASCII.
static ATOM: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let is_sign = matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'/' | b'=' | b'?')
            || matches!(byte, b'^'..=b'`' | b'{'..=b'~');
        table[at] = byte.is_ascii_alphanumeric() || is_sign;
        at += 1;
    }
    table
};

/// What follows the closing quote.
fn after_quotes(text: &str, beyond: bool) -> Option<&str> {
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some(characters.as_str()),
            '\\' => {
                characters.next().filter(|escaped| matches!(escaped, ' '..='~'))?;
            }
            ' '..='~' => {}
            other if beyond && !other.is_ascii() => {}
            _ => return None,
        }
    }
}

fn is_address(literal: &str) -> bool {
    match literal.get(..5).filter(|tag| tag.eq_ignore_ascii_case("IPv6:")) {
        Some(tag) => literal.get(tag.len()..).is_some_and(net::is_ipv6),
        None => net::is_ipv4(literal),
    }
}
