//! Host names, IP addresses and UUIDs.

use super::idn;

/// As in RFC 1123, and what looks like an internationalized label must be one.
pub fn is_hostname(text: &str) -> bool {
    let encoded = |label: &str| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    text.len() <= 253
        && text.split('.').all(is_label)
        && (!text.split('.').any(encoded) || idn::is_strict(text))
}

/// A domain of an e-mail address.
pub fn has_two_labels(text: &str) -> bool {
    let mut labels = 1;
    let mut last = b'.';
    for byte in text.bytes() {
        let allowed = match byte {
            b'.' => last != b'.' && last != b'-',
            b'-' => last != b'.',
            other => other.is_ascii_alphanumeric(),
        };
        if !allowed {
            return false;
        }
        labels += usize::from(byte == b'.');
        last = byte;
    }
    labels > 1 && last != b'.' && last != b'-'
}

fn is_label(part: &str) -> bool {
    let bytes = part.as_bytes();
    let hyphen = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b'-');
    bytes.len() <= 63
        && !hyphen(bytes.first())
        && !hyphen(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Four numbers up to 255 without leading zeros.
pub fn is_ipv4(text: &str) -> bool {
    let octet = |part: &str| {
        let plain = part.len() == 1 || !part.starts_with('0');
        plain
            && (1..=3).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u16>().is_ok_and(|value| value <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(octet)
}

/// Eight groups of hexadecimal digits, the last two perhaps as an IPv4 address, and one run of groups perhaps left out.
pub fn is_ipv6(text: &str) -> bool {
    let group =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let count = |side: &str| {
        if side.is_empty() { Some(0) } else { side.split(':').all(group).then(|| side.split(':').count()) }
    };
    let (groups, most) = match text.rsplit_once(':') {
        Some((before, last)) if last.contains('.') => {
            if !is_ipv4(last) {
                return false;
            }
            // Keeps `::` whole when the address follows it.
            (if before.ends_with(':') { text.get(..=before.len()).unwrap_or(before) } else { before }, 6)
        }
        _ => (text, 8),
    };
    match groups.split_once("::") {
        None => count(groups) == Some(most),
        Some((left, right)) => match (count(left), count(right)) {
            (Some(left), Some(right)) => left + right < most,
            _ => false,
        },
    }
}

pub fn is_uuid(text: &str) -> bool {
    let Ok(bytes) = <&[u8; 36]>::try_from(text.as_bytes()) else { return false };
    // Without stopping early, many bytes are looked at at once.
    bytes.iter().enumerate().fold(true, |valid, (at, byte)| {
        let is_dash = matches!(at, 8 | 13 | 18 | 23);
        valid & if is_dash { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}
