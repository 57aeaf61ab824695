//! The HTTP client of this crate and the runtime that it needs.

use std::time::Duration;

use reqwest::{Client, redirect};
use toolwright_capabilities::http::system_tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn build_client(read_timeout: Duration, redirects: redirect::Policy) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(system_tls()?)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(read_timeout)
        .redirect(redirects)
        .http1_only()
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("cannot set up the HTTP client: {error}"))
}

/// The async runtime for the client. Several threads may block on it.
pub(crate) fn build_runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the async runtime: {error}"))
}

/// The error with its causes, without the URL: it may contain a password.
pub(crate) fn error_chain(error: reqwest::Error) -> String {
    toolwright_capabilities::error_chain(&error.without_url())
}
