//! The request that opens a WebSocket: its headers, and the key that web pages can only send as a subprotocol.

use hyper::header::{
    AUTHORIZATION, CONNECTION, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::{HeaderMap, Method};

use crate::problem::{Kind, Problem};

pub(super) const PROTOCOL: &str = "toolwright.v1";
const KEY_PREFIX: &str = "toolwright.key.";

/// The client's key for the answer.
pub(super) fn check(method: &Method, headers: &HeaderMap) -> Result<String, Problem> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    match key {
        Some(key)
            if *method == Method::GET
                && has(UPGRADE, "websocket")
                && has(CONNECTION, "upgrade")
                && has(SEC_WEBSOCKET_VERSION, "13") =>
        {
            Ok(key.to_owned())
        }
        _ => Err(Problem::new(
            Kind::UPGRADE_REQUIRED,
            "This route is a WebSocket of version 13: connect with one.",
        )),
    }
}

pub(super) fn offers_protocol(headers: &HeaderMap) -> bool {
    offered_protocols(headers).any(|protocol| protocol == PROTOCOL)
}

/// The headers with the key that a web page has sent as a subprotocol. `None` when there is none, or another
/// credential.
pub(crate) fn key_as_authorization(headers: &HeaderMap) -> Option<HeaderMap> {
    if headers.contains_key(AUTHORIZATION) {
        return None;
    }
    let key = offered_protocols(headers).find_map(|protocol| protocol.strip_prefix(KEY_PREFIX))?;
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
    value.set_sensitive(true);
    let mut headers = headers.clone();
    headers.insert(AUTHORIZATION, value);
    Some(headers)
}

fn offered_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (hyper::header::HeaderName::from_static(name), HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    #[test]
    fn a_key_is_read_from_the_subprotocols_of_a_page() {
        let found = key_as_authorization(&headers(&[(
            "sec-websocket-protocol",
            "toolwright.v1, toolwright.key.tw_abc",
        )]));
        assert_eq!(found.unwrap()["authorization"], "Bearer tw_abc");
        assert!(key_as_authorization(&headers(&[("sec-websocket-protocol", "toolwright.v1")])).is_none());
        let both = [("sec-websocket-protocol", "toolwright.key.a"), ("authorization", "Bearer b")];
        assert!(key_as_authorization(&headers(&both)).is_none());
    }

    #[test]
    fn only_an_upgrade_of_version_13_is_accepted() {
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        assert_eq!(check(&Method::GET, &headers(&good)).unwrap(), "dGhlIHNhbXBsZSBub25jZQ==");
        assert!(check(&Method::HEAD, &headers(&good)).is_err());
        for missing in 0..good.len() {
            let mut bad = good.to_vec();
            bad.remove(missing);
            assert!(check(&Method::GET, &headers(&bad)).is_err(), "without {}", good[missing].0);
        }
    }
}
