//! URIs and URI references. The definitions in ajv-formats are one long expression each; without an
//! address in brackets they come down to which characters may stand in which part.

use super::net;

pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    is_scheme(scheme) && parts(rest, Quotes::Refused).is_some_and(|path| !path.is_empty())
}

pub fn is_uri_reference(text: &str) -> bool {
    let rest = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => text,
    };
    // Letters and a colon can also be the start of a path, so nothing is lost by taking a scheme.
    parts(rest, Quotes::Allowed).is_some()
}

/// ajv-formats lets `"` into references, though not into user names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Allowed,
    Refused,
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Checks path, query and fragment; returns the path.
fn parts(text: &str, quotes: Quotes) -> Option<&str> {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let tail = |part: &str| has_only(part, b":@/?", quotes);
    let good = tail(query) && tail(fragment) && (has_only(path, b":@/", quotes) || has_address(path, quotes));
    good.then_some(path)
}

fn has_only(text: &str, more: &[u8], quotes: Quotes) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=%".contains(&byte)
            || more.contains(&byte)
            || (byte == b'"' && quotes == Quotes::Allowed)
    };
    text.bytes().all(allowed) && percents_are_right(text)
}

pub fn percents_are_right(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())))
}

/// One or two slashes, perhaps a user, an address in brackets, perhaps a port, and a path.
fn has_address(path: &str, quotes: Quotes) -> bool {
    let Some((user, rest)) = path.split_once('[') else { return false };
    let Some((address, rest)) = rest.split_once(']') else { return false };
    let Some(user) = user.strip_prefix("//").or_else(|| user.strip_prefix('/')) else { return false };
    let user_is_right =
        user.is_empty() || user.strip_suffix('@').is_some_and(|user| has_only(user, b":", Quotes::Refused));
    let (port, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let digits = port.strip_prefix(':').unwrap_or_default();
    let port_is_right =
        (port.is_empty() || port.starts_with(':')) && digits.bytes().all(|byte| byte.is_ascii_digit());
    user_is_right && port_is_right && has_only(path, b":@/", quotes) && is_literal(address)
}

fn is_literal(address: &str) -> bool {
    let future = |rest: &str| {
        rest.split_once('.').is_some_and(|(version, name)| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte);
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !name.is_empty()
                && name.bytes().all(plain)
        })
    };
    let ipv4 = |text: &str| text.split('.').count() == 4 && text.split('.').all(net::is_octet);
    address.strip_prefix(['v', 'V']).is_some_and(future) || net::has_ipv6_shape(address, ipv4, 6)
}
