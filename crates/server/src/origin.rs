//! CORS: requests of web pages are accepted from the server's own origin and from listed ones. A server on loopback
//! also requires a loopback name in `host`; otherwise any site could point its name at 127.0.0.1 (DNS rebinding) and be
//! same-origin.

use std::net::IpAddr;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    VARY,
};
use hyper::{Method, Response};

use crate::body::{self, Body};
use crate::problem::{Kind, Problem};

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
static FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
static REQUESTED_METHOD: HeaderName = HeaderName::from_static("access-control-request-method");

/// The headers that pages of listed origins may send.
const ALLOWED_HEADERS: &str = "authorization, content-type, x-request-id, last-event-id, mcp-method, mcp-name, \
    mcp-protocol-version, mcp-session-id";

/// The origins whose pages may send requests.
#[derive(Debug)]
pub(crate) struct Origins {
    listed: Vec<String>,
    loopback_only: bool,
}

impl Origins {
    pub fn new(listed: &[String], listen: IpAddr) -> Self {
        let listed = listed.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { listed, loopback_only: listen.is_loopback() }
    }

    /// Refuses a request of a foreign origin. Returns the listed origin that it comes from, if any.
    pub fn check(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
        let host = self.check_host(headers)?;
        let Some(origin) = headers.get(ORIGIN) else {
            // Images, links and forms of another site's page carry no origin.
            return match headers.get(&FETCH_SITE).map(HeaderValue::as_bytes) {
                Some(b"cross-site") => Err(foreign()),
                _ => Ok(None),
            };
        };
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if self.listed.contains(&text) {
            return Ok(Some(origin.clone()));
        }
        if is_own(&text, host) { Ok(None) } else { Err(foreign()) }
    }

    /// As [`Self::check`], for resources that pages of any site may embed.
    pub fn check_link(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
        self.check_host(headers)?;
        Ok(self.check(headers).unwrap_or_default())
    }

    /// As [`Self::check`], for pages of the console: a link on another site may lead to them. A form must come from a
    /// page of this server, so that listed origins cannot send one either.
    pub fn check_page(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let host = self.check_host(headers)?;
        if *method == Method::POST {
            let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or_default();
            return if is_own(origin, host) { Ok(()) } else { Err(foreign_form()) };
        }
        let is = |name: &HeaderName, value: &str| headers.get(name).is_some_and(|own| own == value);
        if is(&FETCH_MODE, "navigate") && is(&FETCH_DEST, "document") {
            return Ok(());
        }
        match self.check(headers)? {
            Some(_) => Err(foreign_form()),
            None => Ok(()),
        }
    }

    fn check_host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() {
            return Err(Problem::new(
                Kind::BAD_REQUEST,
                "A request must have one `host` header, not several.",
            ));
        }
        if self.loopback_only && !is_loopback(host) {
            let detail =
                "The server listens on loopback: the `host` header must be localhost or a loopback address.";
            return Err(Problem::new(Kind::CROSS_ORIGIN, detail));
        }
        Ok(host)
    }
}

fn foreign() -> Problem {
    Problem::new(Kind::CROSS_ORIGIN, "To allow this page, add its origin to `[server] cors_origins`.")
}

fn foreign_form() -> Problem {
    Problem::new(Kind::CROSS_ORIGIN, "The console accepts forms and requests from its own pages only.")
}

/// Whether this is the origin of the server's own pages.
fn is_own(origin: &str, host: &str) -> bool {
    let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    own.is_some_and(|own| own.eq_ignore_ascii_case(host))
}

/// `localhost`, `127.0.0.1`, `[::1]`, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The response to a CORS preflight request.
pub(crate) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if *method != Method::OPTIONS || !headers.contains_key(&REQUESTED_METHOD) {
        return None;
    }
    let mut response = body::no_content();
    let allowed = response.headers_mut();
    allowed.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED_HEADERS));
    allowed.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    Some(response)
}

/// Allows the page of a listed origin to read the response.
pub(crate) fn allow(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("x-request-id, mcp-session-id"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(origins: &Origins, pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        origins.check(&pairs.collect()).is_ok()
    }

    #[test]
    fn a_server_on_loopback_accepts_loopback_names_and_its_own_pages() {
        let origins = Origins::new(&["https://console.example/".to_owned()], "127.0.0.1".parse().unwrap());
        for host in
            ["localhost", "localhost:7300", "127.0.0.1:7300", "127.9.9.9", "[::1]:7300", "LOCALHOST:1"]
        {
            assert!(check(&origins, &[("host", host)]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7300",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1",
        ] {
            assert!(!check(&origins, &[("host", host)]), "{host}");
        }
        let from = |origin| check(&origins, &[("host", "localhost:7300"), ("origin", origin)]);
        assert!(from("http://localhost:7300") && from("https://console.example"));
        for origin in [
            "http://localhost:3000",
            "http://evil.example",
            "null",
            "",
            "http://localhost",
            "ftp://localhost:7300",
        ] {
            assert!(!from(origin), "{origin}");
        }
        assert!(!check(&origins, &[("host", "localhost"), ("sec-fetch-site", "cross-site")]));
        assert!(check(&origins, &[("host", "localhost"), ("sec-fetch-site", "none")]));
    }

    #[test]
    fn links_lead_to_pages_and_forms_come_from_pages_of_the_server() {
        let origins = Origins::new(&["https://listed.example".to_owned()], "127.0.0.1".parse().unwrap());
        let check = |method: Method, pairs: &[(&'static str, &'static str)]| {
            let pairs = [("host", "localhost:7300")].iter().chain(pairs);
            let pairs =
                pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            origins.check_page(&method, &pairs.collect()).is_ok()
        };
        let (site, mode, dest) = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest");
        assert!(check(Method::GET, &[(site, "cross-site"), (mode, "navigate"), (dest, "document")]));
        assert!(!check(Method::GET, &[(site, "cross-site"), (mode, "navigate"), (dest, "iframe")]));
        assert!(!check(Method::GET, &[(site, "cross-site"), (mode, "cors"), (dest, "empty")]));
        assert!(!check(Method::GET, &[("origin", "https://listed.example")]));
        assert!(check(Method::POST, &[("origin", "http://localhost:7300")]));
        for origin in ["https://listed.example", "http://localhost:3000", "null", ""] {
            assert!(!check(Method::POST, &[("origin", origin)]), "{origin}");
        }
        assert!(!check(Method::POST, &[]), "a browser sends the origin of a form");
    }

    #[test]
    fn another_server_accepts_any_host_name_but_no_foreign_pages() {
        let origins = Origins::new(&[], "0.0.0.0".parse().unwrap());
        assert!(check(&origins, &[("host", "tools.example")]));
        assert!(check(&origins, &[("host", "tools.example"), ("origin", "https://tools.example")]));
        assert!(!check(&origins, &[("host", "tools.example"), ("origin", "https://evil.example")]));
    }
}
