//! Which IP addresses are public: the IANA special-purpose registries as two tables, and the forms that embed IPv4 in
//! IPv6. It knows nothing of names or allow lists.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address and prefix length of each block that is not the public internet.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8), // "this network"; 0.0.0.0 reaches the local host on Linux
    (Ipv4Addr::new(10, 0, 0, 0), 8), // private
    (Ipv4Addr::new(100, 64, 0, 0), 10), // carrier-grade NAT; some clouds' metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8), // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's host agent: looks public, but stays on the host
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local; cloud metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12), // private
    (Ipv4Addr::new(192, 0, 0, 0), 24), // protocol assignments; Oracle's metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24), // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24), // 6to4 relays, withdrawn
    (Ipv4Addr::new(192, 168, 0, 0), 16), // private
    (Ipv4Addr::new(198, 18, 0, 0), 15), // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24), // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4), // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4), // reserved, and broadcast
];

/// Special blocks inside 2000::/3; everything outside of it is not public anyway.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarking, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

/// Addresses that no server can have, so that an allow list entry with one is a mistake.
pub(crate) fn is_unassignable(address: IpAddr) -> bool {
    address.is_unspecified()
        || address.is_multicast()
        || matches!(address, IpAddr::V4(address) if address.is_broadcast())
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|block| contains_v4(*block, address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    contains_v6(GLOBAL_UNICAST, address) && !SPECIAL_V6.iter().any(|block| contains_v6(*block, address))
}

/// The IPv4 address that this IPv6 address routes to: mapped, NAT64, 6to4 and ISATAP forms. The IPv4-compatible form
/// (::/96) and local NAT64 (64:ff9b:1::/48) lie outside 2000::/3 and are never public.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if let Some(mapped) = address.to_ipv4_mapped() {
        Some(mapped)
    } else if contains_v6(NAT64, address) || (matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe) {
        // An ISATAP address outside 2000::/3 must not become public through its embedded IPv4 address.
        let nat64 = contains_v6(NAT64, address);
        (nat64 || is_public_v6(address)).then(|| join(segments[6], segments[7]))
    } else if segments[0] == 0x2002 {
        Some(join(segments[1], segments[2]))
    } else {
        None
    }
}

fn contains_v4((first, length): (Ipv4Addr, u32), address: Ipv4Addr) -> bool {
    (u32::from(first) ^ u32::from(address)).leading_zeros() >= length
}

fn contains_v6((first, length): (Ipv6Addr, u32), address: Ipv6Addr) -> bool {
    (u128::from(first) ^ u128::from(address)).leading_zeros() >= length
}
