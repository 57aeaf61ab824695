//! The id of a request: the client's `x-request-id` if it can be used, otherwise one of our own.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_registry::{push_hex, push_hex_number};

pub(crate) static HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST: usize = 128;

/// Makes ids that no other process makes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: [u8; 8],
    next: AtomicU64,
}

impl RequestIds {
    pub fn new() -> Self {
        let mut process = [0; 8];
        // Without randomness ids are still unique in this process.
        let _ = getrandom::fill(&mut process);
        Self { process, next: AtomicU64::new(1) }
    }

    pub fn of(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(&HEADER).filter(|id| is_plain(id.as_bytes())) {
            Some(id) => id.clone(),
            None => self.fresh(),
        }
    }

    fn fresh(&self) -> HeaderValue {
        let mut text = String::with_capacity(36);
        text.push_str("req_");
        push_hex(&mut text, &self.process);
        push_hex_number(&mut text, self.next.fetch_add(1, Ordering::Relaxed));
        HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static("req_0"))
    }
}

/// It is written to logs: nothing in it may speak to a terminal or break a line.
fn is_plain(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    !id.is_empty() && id.len() <= LONGEST && id.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_are_taken_over() {
        let ids = RequestIds::new();
        let of = |id: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&HEADER, HeaderValue::from_static(id));
            ids.of(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(of("4bf92f35-77b3"), "4bf92f35-77b3");
        for bad in ["", "a b", "<script>", "\"x\""] {
            assert!(of(bad).starts_with("req_"), "{bad}");
        }
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }
}
