//! The id of a request: the client's `x-request-id` if it is safe to log, otherwise a new one.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_registry::hex;

pub(crate) static HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_BYTES: usize = 128;

/// Makes ids that are unique across processes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// Random hexadecimal digits of this process.
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    pub fn new() -> Self {
        let mut process = [0; 8];
        // Without randomness ids are still unique in this process.
        let _ = getrandom::fill(&mut process);
        Self { process: hex(&process), next: AtomicU64::new(1) }
    }

    pub fn for_request(&self, headers: &HeaderMap) -> HeaderValue {
        headers.get(&HEADER).filter(|id| is_safe(id.as_bytes())).cloned().unwrap_or_else(|| self.new_id())
    }

    fn new_id(&self) -> HeaderValue {
        let id = format!("req_{}{:x}", self.process, self.next.fetch_add(1, Ordering::Relaxed));
        HeaderValue::from_maybe_shared(bytes::Bytes::from(id)).unwrap_or(HeaderValue::from_static("req_0"))
    }
}

/// The id is written to logs: it must not contain terminal escapes or line breaks.
fn is_safe(id: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    !id.is_empty() && id.len() <= MAX_BYTES && id.iter().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_ids_are_accepted() {
        let ids = RequestIds::new();
        let accepted = |id: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&HEADER, HeaderValue::from_static(id));
            ids.for_request(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(accepted("4bf92f35-77b3"), "4bf92f35-77b3");
        for bad in ["", "a b", "<script>", "\"x\""] {
            assert!(accepted(bad).starts_with("req_"), "{bad}");
        }
        assert_ne!(ids.for_request(&HeaderMap::new()), ids.for_request(&HeaderMap::new()));
    }
}
