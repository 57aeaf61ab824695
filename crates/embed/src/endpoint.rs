//! An HTTP endpoint with OpenAI's embeddings API. Requests are batched; transient errors are retried with backoff.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, Response, StatusCode, header, redirect};
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Runtime;
use toolwright_capabilities::{CapabilityError, Embedder, Secret};
use url::Url;

use crate::http_client::{build_client, build_runtime, error_chain};

/// The maximum number of texts in a batch.
const MAX_BATCH_TEXTS: usize = 64;
/// The maximum number of text bytes in a batch. A single text may be longer.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// Large enough for a batch of vectors with 4,096 dimensions.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
const MAX_ATTEMPTS: u32 = 5;
/// How long the circuit breaker rejects queries after one has failed.
const CIRCUIT_OPEN_FOR: Duration = Duration::from_secs(5);
/// Maximum `Retry-After` that is respected; a longer one is an error.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The endpoint and its limits.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `https://api.openai.com/v1`, with or without `/embeddings`.
    pub url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// The vector length to request from models that can shorten their vectors.
    pub dimensions: Option<usize>,
    /// The timeout of one request.
    pub timeout: Duration,
    /// The delay before the second attempt; doubled for each further one.
    pub backoff: Duration,
    /// The timeout of a query, with all retries.
    pub query_timeout: Duration,
}

impl Settings {
    /// An endpoint with the default timeouts.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(30),
            backoff: Duration::from_millis(500),
            query_timeout: Duration::from_secs(2),
        }
    }
}

/// The endpoint as an embedder.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    url: Url,
    name: String,
    client: Client,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
    /// Configured, or known from the first response.
    dimensions: OnceLock<usize>,
    /// While open: until when queries are rejected, and the error that they get.
    circuit_breaker: Mutex<Option<(Instant, CapabilityError)>>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Endpoint {
    /// Checks the settings and sets up the client. Sends nothing.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let url = embeddings_url(&settings.url)?;
        if settings.model.is_empty() {
            return Err("`model` must not be empty".to_owned());
        }
        let (dimensions, suffix) = match settings.dimensions {
            Some(0) => return Err("`dimensions` must be at least 1, not 0".to_owned()),
            Some(length) => (OnceLock::from(length), format!("/{length}")),
            None => (OnceLock::new(), String::new()),
        };
        Ok(Self {
            name: format!("{}{suffix} at {}", settings.model, redact_url(&url)),
            client: build_client(settings.timeout, redirect::Policy::none())?,
            runtime: Some(build_runtime()?),
            settings,
            url,
            dimensions,
            circuit_breaker: Mutex::default(),
        })
    }

    /// The error with the name of the service.
    fn named(&self, fault: CapabilityError) -> CapabilityError {
        let message = format!("the embedder {} returned no vectors: {}", self.name, fault.message);
        CapabilityError { message, ..fault }
    }

    fn embed_batch(&self, texts: &[&str], timeout: Duration) -> Result<Vec<Vec<f32>>, AttemptError> {
        let Some(runtime) = &self.runtime else { return Err(AttemptError::permanent("it was shut down")) };
        let last_error = Mutex::new(unreachable("it did not respond in time"));
        let response = runtime.block_on(async {
            tokio::time::timeout(timeout, self.send_with_retry(texts, &last_error)).await
        });
        let response = response.unwrap_or_else(|_| {
            let fault = last_error.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(AttemptError { fault, retry: Retry::AfterBackoff })
        })?;
        let vectors =
            normalized_vectors(response, texts.len()).map_err(|error| AttemptError::permanent(&error))?;
        for vector in &vectors {
            let expected = *self.dimensions.get_or_init(|| vector.len());
            if vector.len() != expected {
                let message = format!("a vector has {} dimensions instead of {expected}", vector.len());
                return Err(AttemptError::permanent(&message));
            }
        }
        Ok(vectors)
    }

    /// Stores each error in `last_error`, so that a timeout can report it.
    async fn send_with_retry(
        &self,
        texts: &[&str],
        last_error: &Mutex<CapabilityError>,
    ) -> Result<EmbeddingResponse, AttemptError> {
        let mut attempt = 1;
        loop {
            let error = match self.send(texts).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            *last_error.lock().unwrap_or_else(PoisonError::into_inner) = error.fault.clone();
            let delay = match error.retry {
                Retry::Never => return Err(error),
                Retry::After(delay) => delay,
                Retry::AfterBackoff => self.settings.backoff * 2_u32.pow(attempt - 1),
            };
            let is_too_long = matches!(error.retry, Retry::After(_)) && delay > MAX_RETRY_AFTER;
            if attempt >= MAX_ATTEMPTS || is_too_long {
                return Err(error);
            }
            tokio::time::sleep(delay).await;
            attempt += 1;
            tracing::debug!("retrying the embeddings request (attempt {attempt}): {}", error.fault);
        }
    }

    async fn send(&self, texts: &[&str]) -> Result<EmbeddingResponse, AttemptError> {
        let mut body = json!({ "model": self.settings.model, "input": texts });
        if let Some(length) = self.settings.dimensions {
            body["dimensions"] = length.into();
        }
        let mut request = self.client.post(self.url.clone()).timeout(self.settings.timeout);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(&key.0);
        }
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        let response = request.send().await.map_err(AttemptError::transient)?;
        let status = response.status();
        if status.is_success() {
            let bytes = read_body(response).await?;
            return serde_json::from_slice(&bytes).map_err(|error| {
                AttemptError::permanent(&format!("its response does not match the embeddings API: {error}"))
            });
        }
        let (code, retry) = match status {
            StatusCode::TOO_MANY_REQUESTS => ("RATE_LIMIT", retry_after(&response)),
            StatusCode::REQUEST_TIMEOUT => ("UNREACHABLE", retry_after(&response)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ("FORBIDDEN", Retry::Never),
            status if status.is_server_error() => ("UNREACHABLE", retry_after(&response)),
            _ => ("UNREACHABLE", Retry::Never),
        };
        let body = read_body(response).await.unwrap_or_default();
        let reason = error_reason(&body, self.settings.key.as_ref());
        let fault = CapabilityError::new(code, format!("it responded {status}{reason}"));
        Err(AttemptError { fault, retry })
    }
}

impl Embedder for Endpoint {
    fn name(&self) -> &str {
        &self.name
    }

    /// Embeds a text to find out, unless the length is configured or known from an earlier response.
    fn dimensions(&self) -> Result<usize, CapabilityError> {
        match self.dimensions.get() {
            Some(length) => Ok(*length),
            None => Ok(self.embed(&["length"])?.first().map_or(0, Vec::len)),
        }
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |text: &&&str| {
                size += text.len();
                size <= MAX_BATCH_BYTES
            };
            let count = rest.iter().take(MAX_BATCH_TEXTS).take_while(fits).count().max(1);
            let (batch, after) = rest.split_at(count);
            let batch: Vec<&str> = batch.iter().map(|text| replace_empty(text)).collect();
            vectors.extend(self.embed_batch(&batch, Duration::MAX).map_err(|error| self.named(error.fault))?);
            rest = after;
        }
        Ok(vectors)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, CapabilityError> {
        let circuit_breaker = || self.circuit_breaker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, fault)) = &*circuit_breaker()
            && Instant::now() < *until
        {
            return Err(fault.clone());
        }
        let result = self.embed_batch(&[replace_empty(text)], self.settings.query_timeout);
        let outage = result.as_ref().err().filter(|error| error.affects_all_texts());
        *circuit_breaker() =
            outage.map(|error| (Instant::now() + CIRCUIT_OPEN_FOR, self.named(error.fault.clone())));
        Ok(result.map_err(|error| self.named(error.fault))?.pop().unwrap_or_default())
    }
}

impl Drop for Endpoint {
    /// A runtime must not be dropped on an async thread, and the last owner may be on one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The API refuses empty texts.
fn replace_empty(text: &str) -> &str {
    if text.trim().is_empty() { "." } else { text }
}

/// A failed attempt, and whether to retry it.
struct AttemptError {
    fault: CapabilityError,
    retry: Retry,
}

enum Retry {
    Never,
    AfterBackoff,
    /// The delay of the `Retry-After` header.
    After(Duration),
}

impl AttemptError {
    fn permanent(message: &str) -> Self {
        Self { fault: unreachable(message), retry: Retry::Never }
    }

    fn transient(error: reqwest::Error) -> Self {
        let code = if error.is_timeout() { "TIMEOUT" } else { "UNREACHABLE" };
        Self { fault: CapabilityError::new(code, error_chain(error)), retry: Retry::AfterBackoff }
    }

    /// Whether any other text would fail too: the service is down, overloaded, or refuses the key.
    fn affects_all_texts(&self) -> bool {
        !matches!(self.retry, Retry::Never) || self.fault.code == "FORBIDDEN"
    }
}

fn unreachable(message: &str) -> CapabilityError {
    CapabilityError::new("UNREACHABLE", message)
}

/// Errors do not repeat the URL: it may contain a password.
fn embeddings_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| format!("`url` is not a valid URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("`url` must begin with https:// or http://".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    if !path.ends_with("/embeddings") {
        let path = format!("{}/embeddings", if path.is_empty() { "/v1" } else { path });
        url.set_path(&path);
    }
    Ok(url)
}

/// Reads `Retry-After` in seconds. Its other form, a date, is ignored.
fn retry_after(response: &Response) -> Retry {
    let header = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    match header.and_then(|seconds| seconds.trim().parse::<f64>().ok()).map(Duration::try_from_secs_f64) {
        Some(Ok(delay)) => Retry::After(delay),
        _ => Retry::AfterBackoff,
    }
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, AttemptError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(AttemptError::transient)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_RESPONSE_BYTES {
            let message = format!("its response has more than {MAX_RESPONSE_BYTES} bytes");
            return Err(AttemptError::permanent(&message));
        }
    }
    Ok(bytes)
}

/// The message of an OpenAI error response, with the key redacted. Other content is not shown.
fn error_reason(body: &[u8], key: Option<&Secret>) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(message) = body["error"]["message"].as_str().or_else(|| body["error"].as_str()) else {
        return String::new();
    };
    let message = match key {
        Some(Secret(key)) if !key.is_empty() => message.replace(key.as_str(), "…"),
        _ => message.to_owned(),
    };
    let plain = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200);
    format!(": {}", plain.collect::<String>())
}

/// Removes the password, and the query string, which may contain a key.
fn redact_url(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    // Fails only for URLs without a host, which have no password.
    let _ = url.set_password(None);
    url
}

/// One normalized vector per text, in the order of the texts.
fn normalized_vectors(response: EmbeddingResponse, count: usize) -> Result<Vec<Vec<f32>>, String> {
    if response.data.len() != count {
        return Err(format!("it returned {} vectors for {count} texts", response.data.len()));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (position, item) in response.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(position);
        let slot = vectors.get_mut(index).filter(|slot| slot.is_none());
        let slot = slot.ok_or_else(|| format!("index {index} is out of range or appears twice"))?;
        let length = item.embedding.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return Err(format!("the vector at index {index} is zero or not finite"));
        }
        *slot = Some(item.embedding.iter().map(|x| x / length).collect());
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
