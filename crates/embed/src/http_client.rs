//! The HTTP client of this crate: reqwest with rustls on ring, and the certificates that the system trusts.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, redirect};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn build_client(read_timeout: Duration, redirects: redirect::Policy) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(tls_config()?)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(read_timeout)
        .redirect(redirects)
        .http1_only()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("cannot set up the HTTP client: {error}"))
}

/// The crypto provider is passed in instead of installed for the process: a library must not choose it for its host.
fn tls_config() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up TLS: {error}"))?;
    let config = versions
        .with_platform_verifier()
        .map_err(|error| format!("cannot read the system's certificates: {error}"))?;
    Ok(config.with_no_client_auth())
}

/// The async runtime for the client. Several threads may block on it.
pub(crate) fn build_runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the async runtime: {error}"))
}

/// The error with its causes, because reqwest's own message ends at "error sending request". The URL is removed: it may
/// contain a password.
pub(crate) fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
