//! The fetcher: one deadline over all hops, each hop judged and sent, faults turned into the codes of the capability.

use crate::Fault;
use crate::http::allow::AllowList;
use crate::http::client;
use crate::http::lookup::{Guard, NotPublic};
use crate::http::redirect;
use crate::http::request::Request;
use crate::http::response;
use reqwest::Client;
use rustls::ClientConfig;
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

#[derive(Debug, Clone)]
pub struct Options {
    /// Lookup, connection and TLS together, for each hop.
    pub connect_timeout: Duration,
    /// The whole fetch with all hops; a handler's `timeoutMs` can only shorten it.
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

/// Shared by all tools; clones share the connections.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    guard: Guard,
    trust: fn() -> Result<ClientConfig, String>,
    plain: Client,
    secure: OnceCell<Client>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Fetcher {
    pub fn new(options: Options) -> Result<Self, String> {
        Self::with_guard(options, Guard::system(), client::system_trust)
    }

    /// One that also reaches this host, which the operator has named, wherever it is. Not for handlers' requests.
    pub(crate) fn trusting(options: Options, host: &str) -> Result<Self, String> {
        let guard = Guard { trusted: Some(host.into()), ..Guard::system() };
        Self::with_guard(options, guard, client::system_trust)
    }

    pub(crate) fn with_guard(
        options: Options,
        guard: Guard,
        trust: fn() -> Result<ClientConfig, String>,
    ) -> Result<Self, String> {
        let plain = client::build(&options, guard.clone(), client::no_trust()?)?;
        Ok(Self { shared: Arc::new(Shared { options, guard, trust, plain, secure: OnceCell::new() }) })
    }

    /// Serves `http.fetch(url, init?)`: `arguments` are the handler's, the result is the capability's.
    /// Dropping the future gives up the request.
    pub async fn fetch(&self, allow: &AllowList, arguments: &[Value]) -> Result<Value, Fault> {
        let options = &self.shared.options;
        let request = Request::parse(arguments, options.max_request_bytes)?;
        allow.admit_method(&request.method)?;
        allow.admit_url(&request.url)?;
        let limit =
            request.timeout.map_or(options.total_timeout, |timeout| timeout.min(options.total_timeout));
        match tokio::time::timeout(limit, self.follow(allow, request)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::timeout(format!("no whole answer within {} ms", limit.as_millis()))),
        }
    }

    /// Sends a request that has been admitted, and those that redirects ask for once they are admitted, too.
    async fn follow(&self, allow: &AllowList, request: Request) -> Result<Value, Fault> {
        let mut wrote = false;
        self.hops(allow, request, &mut wrote).await.map_err(|error| after_write(wrote, error))
    }

    async fn hops(&self, allow: &AllowList, mut request: Request, wrote: &mut bool) -> Result<Value, Fault> {
        for _ in 0..=self.shared.options.max_redirects {
            let response = self.send(&request).await?;
            *wrote |= !request.method.is_safe();
            let Some(next) = redirect::next(&request, response.status(), response.headers())? else {
                return response::read(response, self.shared.options.max_response_bytes).await;
            };
            allow.admit_url(&next.url).map_err(|_| redirect::refused())?;
            request = next;
        }
        Err(Fault::not_allowed("the server redirects too often"))
    }

    async fn send(&self, request: &Request) -> Result<reqwest::Response, Fault> {
        let client = self.client(request.url.scheme()).await?;
        let mut builder =
            client.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(|error| explain(&error, request))
    }

    async fn client(&self, scheme: &str) -> Result<Client, Fault> {
        if scheme != "https" {
            return Ok(self.shared.plain.clone());
        }
        let shared = &self.shared;
        let made = shared.secure.get_or_try_init(|| async {
            // Certificates are read from files.
            let tls =
                tokio::task::spawn_blocking(shared.trust).await.map_err(|error| error.to_string())??;
            client::build(&shared.options, shared.guard.clone(), tls)
        });
        // The reason lies in the machine, and is not for handlers.
        made.await.cloned().map_err(|_: String| Fault::unreachable("https cannot be used on this server"))
    }
}

/// Once something was sent that may have had effects, no other code may deny it.
fn after_write(wrote: bool, error: Fault) -> Fault {
    if wrote { Fault::timeout(error.message) } else { error }
}

/// Turns the client's error into ours. Its own text is not used: it holds addresses and whole URLs.
fn explain(error: &reqwest::Error, request: &Request) -> Fault {
    let host = request.url.host_str().unwrap_or_default();
    if chain(error).any(|cause| cause.is::<NotPublic>()) {
        Fault::not_allowed(format!("{host} leads to an address that is not public"))
    } else if error.is_builder() {
        Fault::invalid("the request cannot be sent in this form")
    } else if !error.is_connect() {
        Fault::timeout(format!("the connection to {host} broke before an answer had come"))
    } else if chain(error).any(is_tls) {
        Fault::unreachable(format!("no trusted connection to {host}: TLS or its certificate failed"))
    } else {
        Fault::unreachable(format!("{host} could not be reached"))
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// An I/O error does not show the error that it wraps as its source, and here one wraps the other.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => is_tls(inner),
        None => error.is::<rustls::Error>(),
    }
}
