//! The two HTTP clients behind a fetcher, one for each scheme, with everything turned off that acts by itself
//! (redirects, proxies, cookies, retries, decompression).

use crate::http::fetcher::Options;
use crate::http::lookup::Guard;
use reqwest::{Client, redirect, retry};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn build(options: &Options, guard: Guard, tls: ClientConfig) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(guard)
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(8)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        // These are off in our features; another crate of the workspace may turn the features on.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .http1_only()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {error}"))
}

/// A client for a service that the operator names in the configuration: any address, TLS by what the system trusts, and
/// nothing that acts by itself. Each request brings its own deadline.
pub fn for_service(connect_timeout: Duration) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(system_trust()?)
        .connect_timeout(connect_timeout)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {error}"))
}

/// Trusts what the system trusts. Reading its certificates takes milliseconds, so it waits for the first https request.
pub(crate) fn system_trust() -> Result<ClientConfig, String> {
    let config = versions()?
        .with_platform_verifier()
        .map_err(|error| format!("the system's certificates cannot be read: {error}"))?;
    Ok(config.with_no_client_auth())
}

/// Trusts nobody; the client for plain http needs a configuration that it never uses.
pub(crate) fn no_trust() -> Result<ClientConfig, String> {
    trust(RootCertStore::empty())
}

pub(crate) fn trust(roots: RootCertStore) -> Result<ClientConfig, String> {
    Ok(versions()?.with_root_certificates(roots).with_no_client_auth())
}

/// The provider is named here rather than installed for the process: a library must not choose for its host.
fn versions() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}
