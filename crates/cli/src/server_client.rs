//! A client of the server that uses the store: commands go through it while it runs. It speaks REST, with the key of
//! the file beside the store.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use reqwest::{Method, RequestBuilder, Response};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};
use toolwright_contract::Principal;
use toolwright_orchestrator::capabilities::Client as _;
use toolwright_orchestrator::session::NewSession;

use crate::command::call::TerminalClient;
use crate::output::Failure;
use crate::server_file::{ServerFile, VERSION};

/// How long the messages of a call may take to arrive after its result.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct ServerClient {
    pub file: ServerFile,
    http: reqwest::Client,
}

/// A request that the server has refused: the status, and the text for the person at the terminal.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    pub detail: String,
}

impl ServerClient {
    pub fn new(file: ServerFile) -> Result<Self, Failure> {
        if file.version != VERSION {
            let message = format!(
                "the server that uses the store is toolwright {}, and this command is {VERSION}",
                file.version
            );
            let help = format!("restart the server at {} with this version, or use the other one", file.url);
            return Err(Failure::new(message, help));
        }
        let http = build_client();
        let http = http.map_err(|error| Failure::new(error, "try again"))?;
        Ok(Self { file, http })
    }

    /// The JSON of a response. `principal` is the one that the request acts for; `None`: the session's own.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        principal: Option<&Principal>,
        body: Option<Value>,
    ) -> Result<Result<Value, Refusal>> {
        match self.send_accepted(self.prepare(method, path, principal, body)).await? {
            Ok(response) => {
                let text = response.bytes().await.map_err(|error| self.unreachable(error))?;
                Ok(Ok(serde_json::from_slice(&text).unwrap_or_default()))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// A response of this media type, which the caller reads as it comes.
    pub async fn stream(
        &self,
        path: &str,
        media_type: &str,
        principal: &Principal,
        body: Value,
    ) -> Result<Response> {
        let request = self.prepare(Method::POST, path, Some(principal), Some(body));
        let accepted = self.send_accepted(request.header("accept", media_type)).await?;
        accepted.map_err(|refusal| self.failure(&refusal).into())
    }

    fn prepare(
        &self,
        method: Method,
        path: &str,
        principal: Option<&Principal>,
        body: Option<Value>,
    ) -> RequestBuilder {
        let mut request = self.request(method, path);
        if let Some(Principal { id, org, roles }) = principal {
            let named = json!({ "id": id, "org": org, "roles": roles });
            request = request.header("toolwright-principal", to_ascii(&named.to_string()));
        }
        match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        }
    }

    /// The response, unless the server refuses the request.
    async fn send_accepted(&self, request: RequestBuilder) -> Result<Result<Response, Refusal>> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status().as_u16();
        if (200..=299).contains(&status) {
            return Ok(Ok(response));
        }
        let text = response.bytes().await.map_err(|error| self.unreachable(error))?;
        let detail = detail(&String::from_utf8_lossy(&text));
        if status == 401 {
            let message = format!("the server at {} refuses this command: {detail}", self.file.url);
            let help = "restart the server, or remove the file `*.server` beside the store";
            return Err(Failure::new(message, help).into());
        }
        Ok(Err(Refusal { status, detail }))
    }

    /// As [`Self::send`]; a refusal becomes the failure of the command.
    pub async fn get_answer(
        &self,
        method: Method,
        path: &str,
        principal: Option<&Principal>,
        body: Option<Value>,
    ) -> Result<Value> {
        self.send(method, path, principal, body).await?.map_err(|refusal| self.failure(&refusal).into())
    }

    pub fn failure(&self, refusal: &Refusal) -> Failure {
        let message = format!("the server at {} refuses: {}", self.file.url, refusal.detail);
        Failure::new(message, "correct the command; the server's log has more")
    }

    /// Creates a session, and returns its id.
    pub async fn create_session(&self, new: NewSession) -> Result<String> {
        let mut body = json!({ "mode": new.mode, "clientId": new.client_id, "state": new.state });
        if let Some(id) = new.id {
            body["sessionId"] = id.into();
        }
        let session = self.get_answer(Method::POST, "/v1/sessions", Some(&new.principal), Some(body)).await?;
        session["sessionId"].as_str().map(str::to_owned).ok_or_else(|| self.unexpected())
    }

    /// Prints the messages and the progress of a session to stderr, until it is finished.
    pub async fn print_events(&self, session: &str) -> Result<EventPrinter> {
        let request = self.request(Method::GET, &format!("/v1/sessions/{}/events", encode(session)));
        let mut response = request.send().await.map_err(|error| self.unreachable(error))?;
        Ok(EventPrinter(tokio::spawn(async move { print_events(&mut response).await })))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.file.url)).bearer_auth(self.file.key())
    }

    /// The URL of the request may contain a confirmation token, so the message is without it.
    pub fn unreachable(&self, error: reqwest::Error) -> anyhow::Error {
        let error = error.without_url();
        let message =
            format!("the server at {}, which uses the store, does not answer: {error}", self.file.url);
        Failure::new(
            message,
            "look at the server's log; once it has stopped, commands open the store themselves",
        )
        .into()
    }

    pub fn unexpected(&self) -> anyhow::Error {
        anyhow!("the server at {} gave an unexpected answer", self.file.url)
    }
}

/// The message of a refusal: the detail of a problem document, or a sentence.
fn detail(body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(problem) => {
            let text = |name: &str| problem[name].as_str().unwrap_or_default();
            format!("{}: {}", text("title"), text("detail"))
        }
        Err(_) => body.to_owned(),
    }
}

/// A client without proxy, certificates and redirects: the server is on this machine, and speaks plain HTTP.
fn build_client() -> Result<reqwest::Client> {
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
    Ok(builder.redirect(reqwest::redirect::Policy::none()).build()?)
}

/// The task that prints the events of a session.
#[derive(Debug)]
pub struct EventPrinter(JoinHandle<()>);

impl EventPrinter {
    /// Prints what still arrives, and ends.
    pub async fn finish(mut self) {
        if timeout(DRAIN_TIMEOUT, &mut self.0).await.is_err() {
            self.0.abort();
        }
    }
}

async fn print_events(response: &mut Response) {
    let mut text = String::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) = text.split_once("\n\n") {
            print_event(event);
            text = rest.to_owned();
        }
    }
}

fn print_event(event: &str) {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let data: Value = field("data: ").and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
    match field("event: ") {
        Some("message") => drop(TerminalClient.send(data)),
        Some("progress") => {
            TerminalClient.progress(data["fraction"].as_f64().unwrap_or_default(), data["message"].as_str());
        }
        _ => {}
    }
}

/// A part of a path.
pub fn encode(part: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut out = String::new();
    for byte in part.bytes() {
        if is_plain(byte) { out.push(byte.into()) } else { out.push_str(&format!("%{byte:02X}")) }
    }
    out
}

/// JSON whose other characters are escaped, since headers are ASCII.
fn to_ascii(json: &str) -> String {
    let mut out = String::new();
    for letter in json.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            let mut units = [0; 2];
            letter.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_headers_are_ascii() {
        assert_eq!(encode("a b/ä.1"), "a%20b%2F%C3%A4.1");
        let named = to_ascii(&json!({ "id": "Mïra 🙂" }).to_string());
        assert!(named.is_ascii());
        assert_eq!(serde_json::from_str::<Value>(&named).unwrap()["id"], "Mïra 🙂");
    }
}
