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
    let (mut last, mut dots) = (Part::Dot, 0);
    for byte in text.bytes() {
        let part = PARTS[usize::from(byte)];
        let follows = match part {
            Part::Letter => true,
            Part::Hyphen => last != Part::Dot,
            Part::Dot => last == Part::Letter,
            Part::None => false,
        };
        if !follows {
            return false;
        }
        dots += usize::from(part == Part::Dot);
        last = part;
    }
    dots > 0 && last == Part::Letter
}

/// What a character is to a domain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Letter,
    Hyphen,
    Dot,
}

static PARTS: [Part; 256] = {
    let mut table = [Part::None; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'.' => Part::Dot,
            b'-' => Part::Hyphen,
            other if other.is_ascii_alphanumeric() => Part::Letter,
            _ => Part::None,
        };
        byte += 1;
    }
    table
};

static HEX: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_hexdigit();
        byte += 1;
    }
    table
};

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
    let is_hex = |from: usize, to: usize| bytes[from..to].iter().all(|byte| HEX[usize::from(*byte)]);
    [8, 13, 18, 23].iter().all(|at| bytes[*at] == b'-')
        && is_hex(0, 8)
        && is_hex(9, 13)
        && is_hex(14, 18)
        && is_hex(19, 23)
        && is_hex(24, 36)
}
