//! An endpoint that speaks OpenAI's embeddings API: texts go out in batches, failures that pass are tried again.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, Response, StatusCode, header, redirect};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use toolwright_capabilities::{Embedder, Fault};
use url::Url;

use crate::client::{build, runtime, told};

/// Texts of one request, at most.
const TEXTS: usize = 64;
/// Bytes of text of one request, at most, unless one text has more.
const BYTES: usize = 256 << 10;
/// An answer of so many vectors of 4,096 numbers fits well.
const MOST_BYTES: usize = 32 << 20;
const ATTEMPTS: u32 = 5;
/// After a question that got no vector, others are not put for so long: each would wait in vain.
const PAUSE: Duration = Duration::from_secs(5);
/// A service that asks for more patience is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Where the endpoint is, and what it is asked for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `https://api.openai.com/v1`, with or without `/embeddings`.
    pub url: String,
    pub model: String,
    pub key: Option<Key>,
    /// Asks for vectors of this length, of models that can shorten theirs.
    pub dimensions: Option<usize>,
    /// For one answer.
    pub timeout: Duration,
    /// Before the second attempt; doubled before each further one.
    pub backoff: Duration,
    /// For all attempts at the vector of a question together.
    pub question: Duration,
}

impl Settings {
    /// An endpoint with the usual patience.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(30),
            backoff: Duration::from_millis(500),
            question: Duration::from_secs(2),
        }
    }
}

/// An API key, which no log may show.
#[derive(Clone)]
pub struct Key(pub String);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

/// The service, as an embedder.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    url: Url,
    name: String,
    client: Client,
    /// Taken only when this is dropped.
    runtime: Option<Runtime>,
    /// Known from the first answer on.
    dimensions: OnceLock<usize>,
    /// Until when no question is put, and why.
    pause: Mutex<Option<(Instant, Fault)>>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Endpoint {
    /// Sets the client up; nothing is sent. The error says what is wrong with the settings.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let url = address(&settings.url)?;
        if settings.model.is_empty() || settings.dimensions == Some(0) {
            return Err("`model` must be named, and `dimensions` be at least 1".to_owned());
        }
        let length = settings.dimensions.map_or(String::new(), |length| format!("/{length}"));
        let dimensions = OnceLock::new();
        if let Some(length) = settings.dimensions {
            let _ = dimensions.set(length);
        }
        Ok(Self {
            name: format!("{}{length} at {}", settings.model, without_secrets(&url)),
            client: build(settings.timeout, redirect::Policy::none())?,
            runtime: Some(runtime()?),
            settings,
            url,
            dimensions,
            pause: Mutex::default(),
        })
    }

    fn batch(&self, texts: &[&str], patience: Duration) -> Result<Vec<Vec<f32>>, Failed> {
        let Some(runtime) = &self.runtime else { return Err(Failed::for_good("it was shut down")) };
        let last = Mutex::new(unreachable("it does not answer in time"));
        let asked = runtime.block_on(async { tokio::time::timeout(patience, self.ask(texts, &last)).await });
        let answer = asked.unwrap_or_else(|_| {
            let fault = last.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(Failed { fault, again: Again::Soon })
        })?;
        let vectors = ordered(answer, texts.len()).map_err(|error| Failed::for_good(&error))?;
        for vector in &vectors {
            let expected = *self.dimensions.get_or_init(|| vector.len());
            if vector.len() != expected {
                let told = format!("a vector has {} numbers instead of {expected}", vector.len());
                return Err(Failed::for_good(&told));
            }
        }
        Ok(vectors)
    }

    /// Tries again where that may help; `last` is what the last attempt came to.
    async fn ask(&self, texts: &[&str], last: &Mutex<Fault>) -> Result<Answer, Failed> {
        let mut attempt = 1;
        loop {
            let failed = match self.send(texts).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            *last.lock().unwrap_or_else(PoisonError::into_inner) = failed.fault.clone();
            let usual = self.settings.backoff * 2_u32.pow(attempt - 1);
            match failed.again {
                Again::Never => return Err(failed),
                _ if attempt >= ATTEMPTS => return Err(failed),
                Again::After(wait) if wait > LONGEST_WAIT => return Err(failed),
                Again::After(wait) => tokio::time::sleep(wait).await,
                Again::Soon => tokio::time::sleep(usual).await,
            }
            tracing::debug!("embeddings, attempt {} follows: {}", attempt + 1, failed.fault);
            attempt += 1;
        }
    }

    async fn send(&self, texts: &[&str]) -> Result<Answer, Failed> {
        let body =
            Request { model: &self.settings.model, input: texts, dimensions: self.settings.dimensions };
        let body = serde_json::to_vec(&body).map_err(|error| Failed::for_good(&error.to_string()))?;
        let mut request =
            self.client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json").body(body);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(&key.0);
        }
        let request = request.timeout(self.settings.timeout);
        let response = request.send().await.map_err(Failed::passing)?;
        let status = response.status();
        if status.is_success() {
            let bytes = body_of(response).await?;
            let told =
                |error| Failed::for_good(&format!("its answer is not one of the embeddings API: {error}"));
            return serde_json::from_slice(&bytes).map_err(told);
        }
        let (code, again) = match status {
            StatusCode::TOO_MANY_REQUESTS => ("RATE_LIMIT", again(&response)),
            StatusCode::REQUEST_TIMEOUT => ("UNREACHABLE", again(&response)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ("FORBIDDEN", Again::Never),
            status if status.is_server_error() => ("UNREACHABLE", again(&response)),
            _ => ("UNREACHABLE", Again::Never),
        };
        let body = body_of(response).await.unwrap_or_default();
        let reason = reason(&body, self.settings.key.as_ref());
        Err(Failed { fault: Fault::new(code, said(&format!("it answers {status}{reason}"))), again })
    }
}

impl Embedder for Endpoint {
    fn name(&self) -> &str {
        &self.name
    }

    /// Unless it was configured, the first answer tells: without one, the service is asked; 0 if it does not answer.
    fn dimensions(&self) -> usize {
        self.length().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            0
        })
    }

    fn length(&self) -> Result<usize, Fault> {
        match self.dimensions.get() {
            Some(length) => Ok(*length),
            None => {
                let vectors = self.batch(&["length"], Duration::MAX).map_err(|failed| failed.fault)?;
                Ok(vectors.first().map_or(0, Vec::len))
            }
        }
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |text: &&&str| {
                size += text.len();
                size <= BYTES
            };
            let count = rest.iter().take(TEXTS).take_while(fits).count().max(1);
            let (batch, after) = rest.split_at(count);
            let batch: Vec<&str> = batch.iter().map(|text| sendable(text)).collect();
            vectors.extend(self.batch(&batch, Duration::MAX).map_err(|failed| failed.fault)?);
            rest = after;
        }
        Ok(vectors)
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, Fault> {
        let paused = || self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, fault)) = &*paused()
            && Instant::now() < *until
        {
            return Err(fault.clone());
        }
        let asked = self.batch(&[sendable(text)], self.settings.question);
        // A question that the service does not take says nothing about the next one.
        let away = asked.as_ref().err().filter(|failed| failed.is_of_all());
        *paused() = away.map(|failed| (Instant::now() + PAUSE, failed.fault.clone()));
        Ok(asked.map_err(|failed| failed.fault)?.pop().unwrap_or_default())
    }
}

impl Drop for Endpoint {
    /// A runtime may not be dropped on an async thread, and nobody knows where the last owner is.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The API refuses empty texts.
fn sendable(text: &str) -> &str {
    if text.trim().is_empty() { "." } else { text }
}

/// One attempt that failed.
struct Failed {
    fault: Fault,
    again: Again,
}

enum Again {
    Never,
    Soon,
    After(Duration),
}

impl Failed {
    fn for_good(message: &str) -> Self {
        Self { fault: unreachable(message), again: Again::Never }
    }

    fn passing(error: reqwest::Error) -> Self {
        let code = if error.is_timeout() { "TIMEOUT" } else { "UNREACHABLE" };
        Self { fault: Fault::new(code, said(&told(error))), again: Again::Soon }
    }

    /// Whether another text would have failed as well: the service is away, busy, or does not know us.
    fn is_of_all(&self) -> bool {
        !matches!(self.again, Again::Never) || self.fault.code == "FORBIDDEN"
    }
}

fn unreachable(message: &str) -> Fault {
    Fault::new("UNREACHABLE", said(message))
}

fn said(message: &str) -> String {
    format!("the embedder gave no vectors: {message}")
}

fn address(text: &str) -> Result<Url, String> {
    // It is not repeated: there may be a password in it.
    let mut url = Url::parse(text).map_err(|error| format!("`url` cannot be used: {error}"))?;
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

/// `Retry-After` in seconds; its other form, a date, is treated as none.
fn again(response: &Response) -> Again {
    let header = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    match header.and_then(|seconds| seconds.trim().parse::<f64>().ok()).map(Duration::try_from_secs_f64) {
        Some(Ok(wait)) => Again::After(wait),
        _ => Again::Soon,
    }
}

async fn body_of(mut response: Response) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Failed::passing)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_BYTES {
            return Err(Failed::for_good("its answer is too long"));
        }
    }
    Ok(bytes)
}

/// The message of an answer of OpenAI's form. Nothing else of it is shown, and no key that it repeats.
fn reason(body: &[u8], key: Option<&Key>) -> String {
    let told: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(message) = told["error"]["message"].as_str().or_else(|| told["error"].as_str()) else {
        return String::new();
    };
    let message = match key {
        Some(Key(key)) if !key.is_empty() => message.replace(key.as_str(), "…"),
        _ => message.to_owned(),
    };
    let plain = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200);
    format!(": {}", plain.collect::<String>())
}

/// As it may be shown: what is behind a question mark may be a key.
fn without_secrets(url: &Url) -> Url {
    let mut shown = url.clone();
    shown.set_query(None);
    // An address with a host has room for none.
    let _ = shown.set_password(None);
    shown
}

/// One vector of length 1 for each text, in the texts' order.
fn ordered(answer: Answer, count: usize) -> Result<Vec<Vec<f32>>, String> {
    if answer.data.len() != count {
        return Err(format!("{} vectors came back for {count} texts", answer.data.len()));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (position, item) in answer.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(position);
        let place = vectors.get_mut(index).filter(|place| place.is_none());
        let place = place
            .ok_or_else(|| format!("the vector of text {index} came twice, or there is no such text"))?;
        let length = item.embedding.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return Err(format!("the vector of text {index} has no direction"));
        }
        *place = Some(item.embedding.iter().map(|x| x / length).collect());
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
