//! What a redirect asks for next. The new request is only described here; the allow list judges it like any other.

use crate::Fault;
use crate::http::allow::canonical;
use crate::http::request::Request;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Method, StatusCode};

/// What may follow a request to another origin. All else stays behind, because keys travel under many names
/// (`authorization`, `cookie`, `x-api-key`, …) and the next host may belong to someone else.
const TRAVELLING_HEADERS: &[&str] =
    &["accept", "accept-language", "content-language", "content-type", "user-agent"];

/// The request to follow with, or none if this is the answer.
pub(crate) fn next(
    request: &Request,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Request>, Fault> {
    let Some(location) = headers.get(LOCATION).filter(|_| is_redirect(status)) else {
        return Ok(None);
    };
    let url =
        std::str::from_utf8(location.as_bytes()).ok().and_then(|location| request.url.join(location).ok());
    let url = url.ok_or_else(|| Fault::not_allowed("the server redirects to what is not a URL"))?;
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
        next.headers = request_headers_that_travel(&next.headers);
    }
    Ok(Some(next))
}

/// Says no more: where the server points to may be a secret of its own.
pub(crate) fn refused() -> Fault {
    Fault::not_allowed("the server redirects to a URL that is not allowed for this tool")
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// As browsers do it: 303 turns all but GET and HEAD into GET, 301 and 302 only POST, 307 and 308 nothing.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => !matches!(*method, Method::GET | Method::HEAD),
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        _ => false,
    }
}

fn request_headers_that_travel(headers: &HeaderMap) -> HeaderMap {
    let travels = |name: &str| TRAVELLING_HEADERS.contains(&name);
    headers
        .iter()
        .filter(|(name, _)| travels(name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
