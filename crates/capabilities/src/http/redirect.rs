//! Builds the next request of a redirect. It sends nothing; the allow list checks the request like any other.

use crate::http::allow_list::canonical;
use crate::http::request::Request;
use crate::{CapabilityError, Result};
use reqwest::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Method, StatusCode};

/// The headers that are sent to another origin. API keys have many names (`authorization`, `cookie`, `x-api-key`, …),
/// so every other header is dropped.
const CROSS_ORIGIN_HEADERS: &[&str] =
    &["accept", "accept-language", "content-language", "content-type", "user-agent"];

/// The next request, or `None` if the response is not a redirect.
pub(crate) fn next_request(
    request: &Request,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Request>> {
    let Some(location) = headers.get(LOCATION).filter(|_| is_redirect(status)) else {
        return Ok(None);
    };
    let url =
        std::str::from_utf8(location.as_bytes()).ok().and_then(|location| request.url.join(location).ok());
    let url = url
        .ok_or_else(|| CapabilityError::not_allowed("the server redirects to something that is not a URL"))?;
    let url = canonical(url).map_err(|_| refused())?;
    let mut next = Request { url, ..request.clone() };
    if becomes_get(status, &request.method) {
        next.method = Method::GET;
        next.body = None;
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
            next.headers.remove(name);
        }
    }
    if next.url.origin() != request.url.origin() {
        let headers = next.headers.iter().filter(|(name, _)| CROSS_ORIGIN_HEADERS.contains(&name.as_str()));
        next.headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    Ok(Some(next))
}

/// The message leaves out the URL, which may contain a secret of the server.
pub(crate) fn refused() -> CapabilityError {
    CapabilityError::not_allowed("the server redirects to a URL that is not allowed for this tool")
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Like browsers: 303 turns every method except GET and HEAD into GET, 301 and 302 only POST, 307 and 308 none.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => !matches!(*method, Method::GET | Method::HEAD),
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        _ => false,
    }
}
