//! One entry of an allow list: its grammar, and which scheme and port it permits (the table is in `http/mod.rs`).
//! It must not know requests or DNS.

use crate::http::address;
use std::net::IpAddr;
use url::Host;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowEntry {
    pub(crate) host: HostPattern,
    /// The permitted pairs of scheme and port.
    pub(crate) endpoints: Vec<(&'static str, u16)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostPattern {
    Exact(Host<String>),
    /// The parent domain with its leading dot.
    Subdomains(String),
}

impl HostPattern {
    pub(crate) fn matches(&self, host: &Host<&str>) -> bool {
        match (self, host) {
            (Self::Exact(exact), host) => exact == host,
            (Self::Subdomains(parent), Host::Domain(name)) => {
                name.len() > parent.len() && name.ends_with(parent.as_str())
            }
            _ => false,
        }
    }
}

/// `localhost` and its subdomains always mean this machine (RFC 6761), whatever DNS answers.
pub(crate) fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

impl AllowEntry {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::parse_parts(text).map_err(|problem| format!("http allow list: \"{text}\": {problem}"))
    }

    fn parse_parts(text: &str) -> Result<Self, String> {
        let (scheme, authority) = split_scheme(text)?;
        if authority.contains(['/', '\\', '?', '#', '@']) || authority.contains(char::is_whitespace) {
            return Err("write a host with an optional scheme and port, without a path or user".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let pattern = match host.strip_prefix("*.") {
            Some(parent) => subdomains(parent)?,
            None => HostPattern::Exact(parse_host(host)?),
        };
        let endpoints = permitted_endpoints(scheme, port, network_of(&pattern, port)?);
        Ok(Self { host: pattern, endpoints })
    }
}

fn split_scheme(text: &str) -> Result<(Option<&'static str>, &str), String> {
    match text.split_once("://") {
        None => Ok((None, text)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok((Some("https"), rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok((Some("http"), rest)),
        Some(_) => Err("the scheme must be http or https".to_owned()),
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let end_of_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority[end_of_host..].find(':') {
        None => (authority, None),
        Some(colon) => (&authority[..end_of_host + colon], Some(&authority[end_of_host + colon + 1..])),
    };
    match port {
        None => Ok((host, None)),
        Some(port) if port.contains(':') => {
            Err("write an IPv6 address in brackets, as in [::1]:8080".to_owned())
        }
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok((host, Some(number)))
            }
            _ => Err("the port must be a number from 1 to 65535".to_owned()),
        },
    }
}

fn subdomains(parent: &str) -> Result<HostPattern, String> {
    match parse_host(parent)? {
        Host::Domain(name) if name.contains('.') && !is_localhost(&name) => {
            Ok(HostPattern::Subdomains(format!(".{name}")))
        }
        _ => Err("`*.` must be followed by a domain of at least two labels, as in *.example.com".to_owned()),
    }
}

fn parse_host(text: &str) -> Result<Host<String>, String> {
    if text.contains('*') {
        return Err("`*` must be the whole first label, as in *.example.com".to_owned());
    }
    if text.contains('%') {
        return Err("not a host name or address".to_owned());
    }
    let parsed = Host::parse(text).map_err(|_| "not a host name or address".to_owned())?;
    match &parsed {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            let well_formed = !name.is_empty() && name.split('.').all(|label| !label.is_empty());
            well_formed.then(|| Host::Domain(name.to_owned())).ok_or_else(|| "not a host name".to_owned())
        }
        // 0x7f.1 and 2130706433 are addresses too, but a reader of the configuration would not recognise them.
        Host::Ipv4(address) if address.to_string() != text => Err(format!("write this address as {address}")),
        _ => Ok(parsed),
    }
}

/// Where the host of an entry is. Plain http is permitted implicitly only in the local network.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    Local,
    Public,
}

fn network_of(pattern: &HostPattern, port: Option<u16>) -> Result<Network, String> {
    let address = match pattern {
        HostPattern::Exact(Host::Domain(name)) if is_localhost(name) => {
            return match port {
                Some(_) => Ok(Network::Local),
                None => Err("name the port, as in localhost:8080".to_owned()),
            };
        }
        HostPattern::Exact(Host::Domain(_)) | HostPattern::Subdomains(_) => return Ok(Network::Public),
        HostPattern::Exact(Host::Ipv4(address)) => IpAddr::V4(*address),
        HostPattern::Exact(Host::Ipv6(address)) => IpAddr::V6(*address),
    };
    if address::is_unassignable(address) {
        return Err("no server can have this address".to_owned());
    }
    Ok(if address::is_public(address) { Network::Public } else { Network::Local })
}

fn permitted_endpoints(
    scheme: Option<&'static str>,
    port: Option<u16>,
    network: Network,
) -> Vec<(&'static str, u16)> {
    match (scheme, port) {
        (Some(scheme), port) => vec![(scheme, port.unwrap_or(if scheme == "http" { 80 } else { 443 }))],
        (None, Some(port)) if network == Network::Local => vec![("http", port), ("https", port)],
        (None, Some(80)) => vec![("http", 80)],
        (None, Some(port)) => vec![("https", port)],
        (None, None) if network == Network::Local => vec![("http", 80), ("https", 443)],
        (None, None) => vec![("https", 443)],
    }
}
