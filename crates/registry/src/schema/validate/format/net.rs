//! Addresses and identifiers: e-mail, host names, IP addresses and UUIDs.

pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let atom = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte);
        !part.is_empty() && part.bytes().all(allowed)
    };
    let label = |part: &str| is_label(part, usize::MAX);
    local.split('.').all(atom) && domain.contains('.') && domain.split('.').all(label)
}

pub fn is_hostname(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    (1..=253).contains(&name.len()) && name.split('.').all(|part| is_label(part, 63))
}

fn is_label(part: &str, longest: usize) -> bool {
    let bytes = part.as_bytes();
    let hyphen = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b'-');
    bytes.len() <= longest
        && !hyphen(bytes.first())
        && !hyphen(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

pub fn is_ipv4(text: &str) -> bool {
    let part = |part: &str| {
        let plain = part.len() == 1 || !part.starts_with('0');
        plain && is_octet(part)
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

/// One to three digits, at most 255, leading zeros allowed.
pub fn is_octet(part: &str) -> bool {
    (1..=3).contains(&part.len())
        && part.bytes().all(|byte| byte.is_ascii_digit())
        && part.parse::<u16>().is_ok_and(|value| value <= 255)
}

pub fn is_ipv6(text: &str) -> bool {
    has_ipv6_shape(text, is_ipv4, 6)
}

/// Eight groups of hexadecimal digits, the last two perhaps as an IPv4 address, and one run of
/// groups perhaps left out. With an address, `::` must leave out at least so many groups that
/// `most_before_ipv4` are written.
pub fn has_ipv6_shape(text: &str, ipv4: fn(&str) -> bool, most_before_ipv4: usize) -> bool {
    let group =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let count = |side: &str| {
        if side.is_empty() { Some(0) } else { side.split(':').all(group).then(|| side.split(':').count()) }
    };
    let (groups, has_ipv4) = match text.rsplit_once(':') {
        Some((before, last)) if last.contains('.') => {
            if !ipv4(last) {
                return false;
            }
            // Keeps `::` whole when the address follows it.
            (if before.ends_with(':') { text.get(..=before.len()).unwrap_or(before) } else { before }, true)
        }
        _ => (text, false),
    };
    let most = if has_ipv4 { most_before_ipv4 } else { 8 };
    match groups.split_once("::") {
        None => count(groups) == Some(most),
        Some((left, right)) => match (count(left), count(right)) {
            (Some(left), Some(right)) => left + right < most,
            _ => false,
        },
    }
}

pub fn is_uuid(text: &str) -> bool {
    let prefix = text.get(..9).filter(|start| start.eq_ignore_ascii_case("urn:uuid:"));
    let digits = prefix.and_then(|prefix| text.get(prefix.len()..)).unwrap_or(text).as_bytes();
    digits.len() == 36
        && digits.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
