//! The HTTP clients of a fetcher (one for each scheme) and of configured services, without automatic redirects,
//! proxies, cookies, retries or decompression.

use crate::http::dns_guard::DnsGuard;
use crate::http::fetcher::Options;
use reqwest::{Client, ClientBuilder, redirect, retry};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;

/// A client that resolves names with `guard`.
pub(crate) fn build(options: &Options, guard: DnsGuard, tls: ClientConfig) -> Result<Client, String> {
    let builder = client_builder(tls, options.connect_timeout)
        .dns_resolver(guard)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(8)
        // Cargo may unify features with those of another crate, so decompression is turned off here too.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .http1_only();
    builder.build().map_err(|error| format!("could not create the HTTP client: {error}"))
}

/// A client for a service that the operator has configured: any address, the system's certificates. Callers set a
/// timeout for each request.
pub fn service_client(connect_timeout: Duration) -> Result<Client, String> {
    let builder = client_builder(system_tls()?, connect_timeout);
    builder.build().map_err(|error| format!("could not create the HTTP client: {error}"))
}

fn client_builder(tls: ClientConfig, connect_timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect_timeout)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
}

/// Trusts the system's certificates. Reading them takes milliseconds, so it is done at the first https request.
pub fn system_tls() -> Result<ClientConfig, String> {
    let config = tls_builder()?
        .with_platform_verifier()
        .map_err(|error| format!("could not read the system's certificates: {error}"))?;
    Ok(config.with_no_client_auth())
}

/// Trusts only `roots`. The client for plain http gets none, because it never uses TLS.
pub(crate) fn tls_with_roots(roots: RootCertStore) -> Result<ClientConfig, String> {
    Ok(tls_builder()?.with_root_certificates(roots).with_no_client_auth())
}

/// Names the crypto provider here, because a library must not install one for the whole process.
fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("could not set up TLS: {error}"))
}
