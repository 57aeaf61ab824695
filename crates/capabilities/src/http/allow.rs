//! The allow list of one tool, and the judgement of a URL and a method by it. Every hop of a redirect comes here anew.
//! Addresses behind names are judged later, at the connection (`lookup`).

use crate::Fault;
use crate::http::entry::Entry;
use reqwest::Method;
use url::{Host, Url};

/// Which methods the tool's `sideEffects` leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Methods {
    /// `GET` and `HEAD`.
    ReadOnly,
    All,
}

#[derive(Debug, Clone)]
pub struct AllowList {
    entries: Vec<Entry>,
    methods: Methods,
}

impl AllowList {
    /// Reads `[tool.<toolId>.http] allow`; the error names the first entry that cannot be read. All methods are open.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let entries = entries.iter().map(|entry| Entry::parse(entry)).collect::<Result<_, _>>()?;
        Ok(Self { entries, methods: Methods::All })
    }

    #[must_use]
    pub fn with_methods(self, methods: Methods) -> Self {
        Self { methods, ..self }
    }

    /// What either of two lists opens.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.entries.extend(more.entries);
        self
    }

    pub(crate) fn admit_method(&self, method: &Method) -> Result<(), Fault> {
        let read_only = matches!(*method, Method::GET | Method::HEAD);
        let tunnel = matches!(method.as_str(), "CONNECT" | "TRACE" | "TRACK");
        match self.methods {
            _ if tunnel => Err(Fault::not_allowed(format!("the method {method} is never allowed"))),
            Methods::ReadOnly if !read_only => {
                Err(Fault::not_allowed(format!("a read-only tool may use GET and HEAD, not {method}")))
            }
            _ => Ok(()),
        }
    }

    /// Judges a URL that [`canonical`] has prepared.
    pub(crate) fn admit_url(&self, url: &Url) -> Result<(), Fault> {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Fault::invalid("the URL has no host"));
        };
        let door = (url.scheme(), port);
        let mut known_host = false;
        for entry in self.entries.iter().filter(|entry| entry.host.matches(&host)) {
            known_host = true;
            if entry.doors.contains(&door) {
                return Ok(());
            }
        }
        Err(Fault::not_allowed(if known_host {
            format!("{host} is allowed for this tool, but not by {} on port {port}", url.scheme())
        } else {
            format!("{host} is not in the http allow list of this tool")
        }))
    }
}

/// Brings a URL into the one form that is judged, sent and reported: http or https, no user, no trailing dot after the
/// host, no fragment. Case, IDNA and odd spellings of addresses are already settled by the URL parser, which the HTTP
/// client shares, so that both see the same host.
pub(crate) fn canonical(mut url: Url) -> Result<Url, Fault> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Fault::not_allowed("only http and https URLs are allowed"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Fault::not_allowed(
            "a URL may not carry a user or password; use the authorization header",
        ));
    }
    if let Some(Host::Domain(name)) = url.host()
        && let Some(bare) = name.strip_suffix('.')
    {
        let bare = bare.to_owned();
        url.set_host(Some(&bare)).map_err(|_| Fault::invalid("the URL has no proper host"))?;
    }
    url.set_fragment(None);
    Ok(url)
}
