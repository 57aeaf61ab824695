//! The allow list of one tool: decides whether a URL and a method are permitted, again for every redirect.
//! The addresses of a name are checked later, when the connection is opened (`dns_guard.rs`).

use crate::http::allow_entry::AllowEntry;
use crate::{CapabilityError, Result};
use reqwest::Method;
use url::{Host, Url};

/// The HTTP methods that the tool's `sideEffects` permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Methods {
    /// `GET` and `HEAD`.
    ReadOnly,
    All,
}

/// The hosts and methods that one tool may use.
#[derive(Debug, Clone)]
pub struct AllowList {
    entries: Vec<AllowEntry>,
    methods: Methods,
}

impl AllowList {
    /// Parses `[tool.<toolId>.http] allow`, with all methods. The error names the first invalid entry.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let entries = entries.iter().map(|entry| AllowEntry::parse(entry)).collect::<Result<_, _>>()?;
        Ok(Self { entries, methods: Methods::All })
    }

    #[must_use]
    pub fn with_methods(self, methods: Methods) -> Self {
        Self { methods, ..self }
    }

    /// Adds the entries of another list.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.entries.extend(more.entries);
        self
    }

    pub(crate) fn check_method(&self, method: &Method) -> Result<()> {
        let read_only = matches!(*method, Method::GET | Method::HEAD);
        let tunnel = matches!(method.as_str(), "CONNECT" | "TRACE" | "TRACK");
        match self.methods {
            _ if tunnel => Err(CapabilityError::not_allowed(format!("the method {method} is never allowed"))),
            Methods::ReadOnly if !read_only => Err(CapabilityError::not_allowed(format!(
                "a read-only tool may use GET and HEAD, not {method}"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks a URL in the form that [`canonical`] returns.
    pub(crate) fn check_url(&self, url: &Url) -> Result<()> {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(CapabilityError::invalid("the URL has no host"));
        };
        let endpoint = (url.scheme(), port);
        let mut known_host = false;
        for entry in self.entries.iter().filter(|entry| entry.host.matches(&host)) {
            known_host = true;
            if entry.endpoints.contains(&endpoint) {
                return Ok(());
            }
        }
        Err(CapabilityError::not_allowed(if known_host {
            format!("{host} is allowed for this tool, but not with {} on port {port}", url.scheme())
        } else {
            format!("{host} is not in the http allow list of this tool")
        }))
    }
}

/// The one form of a URL that is checked, sent and reported: http or https, no user, no trailing dot after the host, no
/// fragment. The URL parser, which the HTTP client shares, has already normalised case, IDNA and spellings of
/// addresses.
pub(crate) fn canonical(mut url: Url) -> Result<Url> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(CapabilityError::not_allowed("only http and https URLs are allowed"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CapabilityError::not_allowed(
            "a URL may not carry a user or password; use the authorization header",
        ));
    }
    if let Some(Host::Domain(name)) = url.host()
        && let Some(bare) = name.strip_suffix('.')
    {
        let bare = bare.to_owned();
        url.set_host(Some(&bare)).map_err(|_| CapabilityError::invalid("the URL has no valid host"))?;
    }
    url.set_fragment(None);
    Ok(url)
}
