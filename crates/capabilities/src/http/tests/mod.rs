//! Tests of `http.fetch` against small servers on loopback, and the fixtures that they share.

mod address_tests;
mod allow_list_tests;
mod dns_guard_tests;
mod limits_tests;
mod redirect_tests;
mod request_tests;
mod response_tests;
pub(crate) mod test_server;
mod tls_tests;

use crate::Result;
use crate::http::dns_guard::DnsGuard;
use crate::http::{AllowList, Fetcher, Options, http_client};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn options() -> Options {
    Options {
        connect_timeout: Duration::from_secs(5),
        total_timeout: Duration::from_secs(20),
        max_response_bytes: 1000,
        max_request_bytes: 1000,
        max_redirects: 3,
    }
}

/// In these tests 127.0.0.2 is the only public address.
pub(crate) fn is_test_public(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 2])
}

/// A fetcher that resolves names with the function `names`.
pub(crate) fn fetcher_with(
    names: impl Fn(&str) -> Vec<[u8; 4]> + Send + Sync + 'static,
    options: Options,
) -> Fetcher {
    Fetcher::with_guard(options, guard_with(names), no_tls).unwrap()
}

pub(crate) fn guard_with(names: impl Fn(&str) -> Vec<[u8; 4]> + Send + Sync + 'static) -> DnsGuard {
    let lookup = Arc::new(move |name: String| {
        let addresses = names(&name).into_iter().map(IpAddr::from).collect();
        Box::pin(std::future::ready(Ok(addresses))) as crate::http::dns_guard::LookupFuture
    });
    DnsGuard { lookup, is_public: is_test_public, configured_host: None }
}

/// A TLS configuration without any trusted certificate.
pub(crate) fn no_tls() -> Result<ClientConfig, String> {
    http_client::tls_with_roots(RootCertStore::empty())
}

/// `public.test` and its subdomains resolve to 127.0.0.2, `private.test` to 127.0.0.1; other names do not exist.
pub(crate) fn fetcher() -> Fetcher {
    fetcher_with(known_names, options())
}

pub(crate) fn known_names(name: &str) -> Vec<[u8; 4]> {
    match name {
        "private.test" => vec![[127, 0, 0, 1]],
        "mixed.test" => vec![[127, 0, 0, 2], [127, 0, 0, 1]],
        name if name.ends_with("public.test") => vec![[127, 0, 0, 2]],
        _ => vec![],
    }
}

pub(crate) fn allow(entries: &[&str]) -> AllowList {
    AllowList::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub(crate) async fn get(fetcher: &Fetcher, allow: &AllowList, url: &str) -> Result<Value> {
    fetcher.fetch(allow, &[json!(url)]).await
}

pub(crate) fn code(result: Result<Value>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code,
    }
}
