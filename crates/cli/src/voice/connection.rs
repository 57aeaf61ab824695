//! Opens the socket: plain or TLS, with the key in the header. A refusal has the server's problem detail.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::{Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::{self, Error};
use url::Url;

use crate::output::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("toolwright.v1");

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub type Socket = WebSocketStream<Box<dyn Stream>>;

/// The address of the voice socket, and the key.
pub struct Target {
    url: Url,
    key: Option<String>,
}

impl Target {
    /// `url` is the server's, with or without `/voice`.
    pub fn new(url: &str, key: Option<String>) -> Result<Self, Failure> {
        let help = "name the server as in --url https://agent.example or --url ws://127.0.0.1:7300/voice";
        let wrong = |why: &str| Failure::usage(format!("--url {url:?} {why}"), help);
        let mut parsed = Url::parse(url).map_err(|error| wrong(&format!("is no URL: {error}")))?;
        let scheme = match parsed.scheme() {
            "http" | "ws" => "ws",
            "https" | "wss" => "wss",
            _ => return Err(wrong("begins with none of http:, https:, ws:, wss:")),
        };
        if parsed.host_str().is_none_or(str::is_empty) || parsed.set_scheme(scheme).is_err() {
            return Err(wrong("names no host"));
        }
        if parsed.path() == "/" {
            parsed.set_path("/voice");
        }
        Ok(Self { url: parsed, key })
    }

    pub async fn connect(&self) -> Result<Socket, Failure> {
        let request = self.request()?;
        let connecting = async {
            let stream = self.open_stream().await?;
            let connected = tokio_tungstenite::client_async(request, stream).await;
            connected.map(|(socket, _)| socket).map_err(|error| self.refused(error))
        };
        let timed_out = |_| self.unreachable("no answer within 10 seconds");
        timeout(CONNECT_TIMEOUT, connecting).await.map_err(timed_out)?
    }

    fn request(&self) -> Result<Request, Failure> {
        let mut request = self.url.as_str().into_client_request().map_err(|error| self.unreachable(error))?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let help = "copy the key as `toolwright keys create` printed it";
            let mut value =
                value.map_err(|_| Failure::usage("--key has characters that no key has", help))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    async fn open_stream(&self) -> Result<Box<dyn Stream>, Failure> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host, port)).await.map_err(|error| self.unreachable(error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(error))?;
        if self.url.scheme() == "ws" {
            return Ok(Box::new(stream));
        }
        let tls = tls_config().map_err(|error| self.unreachable(error))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| self.unreachable(error))?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
        stream.map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: impl std::fmt::Display) -> Failure {
        let message = format!("cannot connect to {}: {error}", self.url);
        Failure::new(message, "check --url, and that `toolwright serve` runs there")
    }

    fn refused(&self, error: Error) -> Failure {
        let Error::Http(response) = error else { return self.unreachable(error) };
        let (status, detail) = (response.status(), problem_text(&response));
        let message = format!("{} refuses the connection: {status} {detail}", self.url);
        let help = match status.as_u16() {
            401 => "give a key with --key or TOOLWRIGHT_KEY; `toolwright keys create` makes one",
            404 | 426 => "check --url: the voice socket is at /voice",
            503 => "set `[voice] provider` in the server's toolwright.toml, or try later",
            _ => "the server's log has more",
        };
        Failure::new(message, help)
    }
}

/// The detail of a problem document.
fn problem_text(response: &Response) -> String {
    let body = response.body().as_deref().unwrap_or_default();
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    problem["detail"].as_str().or(problem["title"].as_str()).unwrap_or_default().to_owned()
}

fn tls_config() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(builder.with_platform_verifier()?.with_no_client_auth())
}

/// The text of a failure of the open socket.
pub fn connection_lost(error: &tungstenite::Error) -> Failure {
    Failure::new(format!("the connection was lost: {error}"), "try again; the server's log has more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_or_without_the_path() {
        for (given, url) in [
            ("http://127.0.0.1:7300", "ws://127.0.0.1:7300/voice"),
            ("https://agent.example/", "wss://agent.example/voice"),
            ("ws://[::1]:9/other", "ws://[::1]:9/other"),
        ] {
            assert_eq!(Target::new(given, None).unwrap().url.as_str(), url);
        }
        for given in ["127.0.0.1:7300", "ftp://agent.example", "nothing"] {
            assert_eq!(Target::new(given, None).err().map(|failure| failure.code), Some(2), "{given}");
        }
    }
}
