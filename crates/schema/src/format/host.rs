//! Host names, IP addresses and UUIDs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::idn;

/// As in RFC 1123; a label that starts with `xn--` must be a valid internationalized label.
pub fn is_hostname(text: &str) -> bool {
    let is_encoded = |label: &str| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    text.len() <= 253
        && text.split('.').all(|label| label.len() <= 63 && is_label(label))
        && (!text.split('.').any(is_encoded) || idn::is_idna_2008_name(text))
}

/// The domain of an e-mail address.
pub fn has_two_labels(text: &str) -> bool {
    text.contains('.') && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

pub fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

pub fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub fn is_uuid(text: &str) -> bool {
    let has_place = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(has_place)
}
