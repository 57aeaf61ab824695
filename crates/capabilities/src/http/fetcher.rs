//! `http.fetch`: one deadline over all redirects, every hop checked by the allow list, errors mapped to capability
//! codes.

use crate::http::allow_list::AllowList;
use crate::http::dns_guard::{DnsGuard, NotPublic};
use crate::http::http_client;
use crate::http::redirect;
use crate::http::request::Request;
use crate::http::response;
use crate::{CapabilityError, Result};
use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Timeouts and limits of `http.fetch`.
#[derive(Debug, Clone)]
pub struct Options {
    /// DNS, TCP and TLS together, for each hop.
    pub connect_timeout: Duration,
    /// For all hops together; a handler's `timeoutMs` can only shorten it.
    pub total_timeout: Duration,
    pub max_response_bytes: usize,
    /// URL, headers and body together.
    pub max_request_bytes: usize,
    pub max_redirects: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(10),
            max_response_bytes: 1024 * 1024,
            max_request_bytes: 256 * 1024,
            max_redirects: 5,
        }
    }
}

/// Shared by all tools; clones share the connection pool.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    guard: DnsGuard,
    tls: fn() -> Result<ClientConfig, String>,
    http_client: Client,
    https_client: OnceCell<Client>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Fetcher {
    pub fn new(options: Options) -> Result<Self, String> {
        Self::with_guard(options, DnsGuard::system(), http_client::system_tls)
    }

    /// A fetcher that also reaches `host` at a private address, because the operator has configured it. Not for
    /// handlers.
    pub(crate) fn for_configured_host(options: Options, host: &str) -> Result<Self, String> {
        let guard = DnsGuard { configured_host: Some(host.into()), ..DnsGuard::system() };
        Self::with_guard(options, guard, http_client::system_tls)
    }

    pub(crate) fn with_guard(
        options: Options,
        guard: DnsGuard,
        tls: fn() -> Result<ClientConfig, String>,
    ) -> Result<Self, String> {
        let no_tls = http_client::tls_with_roots(RootCertStore::empty())?;
        let http_client = http_client::build(&options, guard.clone(), no_tls)?;
        let https_client = OnceCell::new();
        Ok(Self { shared: Arc::new(Shared { options, guard, tls, http_client, https_client }) })
    }

    /// `http.fetch(url, init?)` with the handler's arguments. Dropping the future cancels the request.
    pub async fn fetch(&self, allow: &AllowList, arguments: &[Value]) -> Result<Value> {
        let options = &self.shared.options;
        let request = Request::parse(arguments, options.max_request_bytes)?;
        allow.check_method(&request.method)?;
        allow.check_url(&request.url)?;
        let timeout =
            request.timeout.map_or(options.total_timeout, |timeout| timeout.min(options.total_timeout));
        let mut may_have_effects = false;
        let hops = self.follow_redirects(allow, request, &mut may_have_effects);
        match tokio::time::timeout(timeout, hops).await {
            // Once a write was sent, no error may claim that there were no side effects.
            Ok(Err(error)) if may_have_effects => Err(CapabilityError::timeout(error.message)),
            Ok(result) => result,
            Err(_) => Err(CapabilityError::timeout(format!(
                "no complete response within {} ms",
                timeout.as_millis()
            ))),
        }
    }

    /// Sends a permitted request and then each redirect that is permitted too.
    async fn follow_redirects(
        &self,
        allow: &AllowList,
        mut request: Request,
        may_have_effects: &mut bool,
    ) -> Result<Value> {
        for _ in 0..=self.shared.options.max_redirects {
            let response = self.send(&request).await?;
            *may_have_effects |= !request.method.is_safe();
            let Some(next) = redirect::next_request(&request, response.status(), response.headers())? else {
                return response::read(response, self.shared.options.max_response_bytes).await;
            };
            allow.check_url(&next.url).map_err(|_| redirect::refused())?;
            request = next;
        }
        Err(CapabilityError::not_allowed("the server redirects too many times"))
    }

    async fn send(&self, request: &Request) -> Result<reqwest::Response> {
        let client = self.client(request.url.scheme()).await?;
        let mut builder =
            client.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(|error| to_capability_error(&error, request))
    }

    async fn client(&self, scheme: &str) -> Result<Client> {
        if scheme != "https" {
            return Ok(self.shared.http_client.clone());
        }
        let shared = &self.shared;
        let client = shared.https_client.get_or_try_init(|| async {
            // Reads certificate files.
            let tls = tokio::task::spawn_blocking(shared.tls).await.map_err(|error| error.to_string())??;
            http_client::build(&shared.options, shared.guard.clone(), tls)
        });
        // The cause is a detail of this machine and not for handlers.
        client
            .await
            .cloned()
            .map_err(|_: String| CapabilityError::unreachable("https is not available on this server"))
    }
}

/// Maps an error of the client. Its own text is not used, because it contains addresses and whole URLs.
fn to_capability_error(error: &reqwest::Error, request: &Request) -> CapabilityError {
    let host = request.url.host_str().unwrap_or_default();
    if error_chain(error).any(|cause| cause.is::<NotPublic>()) {
        CapabilityError::not_allowed(format!("{host} resolves to an address that is not public"))
    } else if error.is_builder() {
        CapabilityError::invalid("the request is not valid HTTP")
    } else if !error.is_connect() {
        CapabilityError::timeout(format!("the connection to {host} broke before a response arrived"))
    } else if error_chain(error).any(is_tls) {
        CapabilityError::unreachable(format!(
            "no trusted connection to {host}: the TLS handshake or its certificate failed"
        ))
    } else {
        CapabilityError::unreachable(format!("could not connect to {host}"))
    }
}

fn error_chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// An I/O error does not return the error that it wraps as its `source`, so wrapped errors are unpacked here.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => is_tls(inner),
        None => error.is::<rustls::Error>(),
    }
}
