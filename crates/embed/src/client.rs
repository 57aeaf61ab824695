//! The HTTP client of this crate: rustls on ring, and what the system trusts.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

const CONNECT: Duration = Duration::from_secs(10);

/// A client that gives up when nothing has come for `patience`.
pub(crate) fn build(patience: Duration, redirects: redirect::Policy) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(tls()?)
        .connect_timeout(CONNECT)
        .read_timeout(patience)
        .redirect(redirects)
        .http1_only()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {error}"))
}

/// The provider is named here rather than installed for the process: a library must not choose for its host.
fn tls() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let config = versions
        .with_platform_verifier()
        .map_err(|error| format!("the system's certificates cannot be read: {error}"))?;
    Ok(config.with_no_client_auth())
}

/// What drives the client. Several threads may wait on it.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the network cannot be used: {error}"))
}

/// An error with what caused it: reqwest's own words stop at "error sending request". Without the address, in which there may be
/// a password.
pub(crate) fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
