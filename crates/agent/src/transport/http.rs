//! One request to a model over HTTP: timeouts, retries before the first byte, bounded buffers, typed errors.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, redirect};
use serde_json::Value;
use toolwright_orchestrator::capabilities::http::system_tls;
use toolwright_providers::{Assembler, FrameDecoder, Provider, provider};
use url::Url;

use super::{StepReader, Transport, transport};
use crate::event::FinishReason;
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::settings::{ModelSettings, Timeouts};

/// Maximum `retry-after` that is respected; a longer one ends the request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Maximum number of bytes read from an error response, for its code.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A model behind an HTTP API.
#[derive(Debug)]
pub struct RemoteModel {
    transport: &'static Transport,
    provider: &'static Provider,
    name: String,
    url: Url,
    client: Client,
    timeouts: Timeouts,
}

impl RemoteModel {
    /// Checks the settings; sends no request.
    pub fn new(settings: ModelSettings) -> Result<Self, String> {
        let ModelSettings { provider: provider_name, model, base_url, key, timeouts } = settings;
        let transport = transport(&provider_name)?;
        let provider = provider(transport.provider).map_err(|error| error.to_string())?;
        if model.is_empty()
            || model.len() > 256
            || model.contains(|c: char| c.is_control() || "?#% ".contains(c))
        {
            return Err(format!("`model` must be the name of a model of {}", provider.title));
        }
        let base = base_url.as_deref().unwrap_or(transport.base_url).trim_end_matches('/');
        let url = format!("{base}{}", (transport.path)(&model));
        let url =
            Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| format!("`base_url` must be an http or https URL, not `{base}`"))?;
        let key = key.as_ref().map(|key| key.0.trim()).filter(|key| !key.is_empty());
        let mut headers = HeaderMap::new();
        for (name, value) in (transport.headers)(key) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| "the key contains characters that no HTTP header can have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let client = Client::builder()
            .tls_backend_preconfigured(system_tls()?)
            .connect_timeout(timeouts.connect)
            .redirect(redirect::Policy::none())
            .default_headers(headers)
            .http1_only()
            .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("cannot set up the HTTP client: {error}"))?;
        Ok(Self { transport, provider, name: model, url, client, timeouts })
    }

    pub(crate) const fn provider(&self) -> &'static Provider {
        self.provider
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request, and waits for the first bytes of the response. Until then, temporary failures are retried.
    pub(crate) async fn send(&self, request: &ModelRequest) -> Result<ResponseStream, ModelError> {
        let body = (self.transport.body)(&self.name, request).to_string();
        let mut attempt = 0;
        loop {
            let failed = match self.attempt(&body).await {
                Ok(stream) => return Ok(stream),
                Err(failed) => failed,
            };
            let delay = self.delay(attempt, failed.retry_after).filter(|_| failed.is_retryable);
            let Some(delay) = delay else {
                let (provider, model, code) = (self.provider.name, &self.name, failed.error.kind.as_str());
                tracing::warn!(
                    provider,
                    model,
                    code,
                    status = failed.status,
                    "a request to the model failed"
                );
                return Err(failed.error);
            };
            attempt += 1;
            tokio::time::sleep(delay).await;
        }
    }

    /// The delay before the next attempt; `None` when there is none.
    fn delay(&self, attempt: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if attempt >= self.timeouts.retries {
            return None;
        }
        match retry_after {
            Some(delay) => (delay <= MAX_RETRY_AFTER).then_some(delay),
            None => Some(self.timeouts.backoff * 2_u32.saturating_pow(attempt.min(6))),
        }
    }

    async fn attempt(&self, body: &str) -> Result<ResponseStream, FailedAttempt> {
        let post = self.client.post(self.url.clone()).header("content-type", "application/json");
        let post = post.header("accept", "text/event-stream, application/x-ndjson, application/json");
        let first = async {
            let response = post.body(body.to_owned()).send().await;
            let mut response = response.map_err(|error| self.unreachable(&error))?;
            if !response.status().is_success() {
                return Err(self.refused(response).await);
            }
            match response.chunk().await {
                Ok(Some(chunk)) => Ok((response, chunk)),
                Ok(None) | Err(_) => Err(FailedAttempt::retryable(truncated_response())),
            }
        };
        let first = tokio::time::timeout(self.timeouts.first_byte, first).await;
        let (response, chunk) = first.unwrap_or_else(|_| Err(FailedAttempt::final_error(timeout())))?;
        let mut stream = ResponseStream {
            read: self.transport.read,
            idle: self.timeouts.idle,
            response,
            decoder: Some(self.provider.frame_decoder()),
            assembler: Some(self.provider.assembler()),
            reader: StepReader::default(),
            bytes: 0,
            has_calls: false,
            is_done: false,
        };
        stream.push(&chunk).map_err(FailedAttempt::final_error)?;
        Ok(stream)
    }

    /// The text contains neither address nor cause: both may contain secrets. The log has the kind of the failure.
    fn unreachable(&self, error: &reqwest::Error) -> FailedAttempt {
        let title = self.provider.title;
        let message = if error.is_connect() {
            format!("{title} cannot be reached: check `base_url` and the network, or try again later.")
        } else if error.is_timeout() {
            return FailedAttempt::retryable(timeout());
        } else {
            format!("The connection to {title} failed: try again later.")
        };
        FailedAttempt::retryable(ModelError { kind: ModelErrorKind::Unavailable, message })
    }

    async fn refused(&self, mut response: Response) -> FailedAttempt {
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
        let kind = kind_of(status, &String::from_utf8_lossy(&body));
        let is_retryable = matches!(kind, ModelErrorKind::RateLimited | ModelErrorKind::Unavailable);
        let error = ModelError { kind, message: self.message(kind, status) };
        FailedAttempt { error, is_retryable, retry_after, status: status.as_u16() }
    }

    fn message(&self, kind: ModelErrorKind, status: StatusCode) -> String {
        let (title, model) = (self.provider.title, &self.name);
        match kind {
            ModelErrorKind::Authentication => {
                format!(
                    "{title} does not accept the key, or the key may not use `{model}`: check `key_env` in [agent]."
                )
            }
            ModelErrorKind::UnknownModel => {
                format!("{title} knows no model `{model}`: check `model` and `base_url` in [agent].")
            }
            ModelErrorKind::RateLimited => format!("{title} limits the rate of requests: try again later."),
            ModelErrorKind::Quota => format!("The account at {title} has no credit left."),
            ModelErrorKind::ContextLength => {
                format!(
                    "The conversation is too long for `{model}`: start a new one, or lower `max_input_tokens`."
                )
            }
            ModelErrorKind::InvalidRequest => format!("{title} refused the request ({status})."),
            _ => format!("{title} does not work at the moment ({status}): try again later."),
        }
    }
}

/// An attempt without a response.
struct FailedAttempt {
    error: ModelError,
    /// The same request may succeed later.
    is_retryable: bool,
    retry_after: Option<Duration>,
    status: u16,
}

impl FailedAttempt {
    const fn retryable(error: ModelError) -> Self {
        Self { error, is_retryable: true, retry_after: None, status: 0 }
    }

    const fn final_error(error: ModelError) -> Self {
        Self { error, is_retryable: false, retry_after: None, status: 0 }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(milliseconds) => milliseconds / 1000.0,
        None => number(RETRY_AFTER.as_str())?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// The kind of a refusal: by status, and by the codes that providers document. The rest of the body is ignored.
fn kind_of(status: StatusCode, body: &str) -> ModelErrorKind {
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let word = |path: &str| error.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let code = [word("/error/code"), word("/error/type"), word("/error/status")];
    let says = |known: &[&str]| known.iter().any(|known| code.contains(known));
    match status.as_u16() {
        _ if says(&["insufficient_quota", "billing_error"]) => ModelErrorKind::Quota,
        _ if says(&["context_length_exceeded", "exceed_context_size_error"]) => ModelErrorKind::ContextLength,
        _ if says(&["model_not_found"]) => ModelErrorKind::UnknownModel,
        400 if body.contains("API_KEY_INVALID") => ModelErrorKind::Authentication,
        401 | 403 => ModelErrorKind::Authentication,
        402 => ModelErrorKind::Quota,
        404 => ModelErrorKind::UnknownModel,
        413 => ModelErrorKind::ContextLength,
        429 => ModelErrorKind::RateLimited,
        408 | 409 | 425 | 500.. => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::InvalidRequest,
    }
}

/// A response that is being read. Dropping it closes the connection, which cancels the request at the provider.
#[derive(Debug)]
pub(crate) struct ResponseStream {
    read: fn(&mut StepReader, &Value),
    idle: Duration,
    response: Response,
    decoder: Option<FrameDecoder>,
    assembler: Option<Assembler>,
    reader: StepReader,
    bytes: usize,
    has_calls: bool,
    is_done: bool,
}

impl ResponseStream {
    /// The next piece; the last one is [`ModelEvent::Finished`].
    pub async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        loop {
            if let Some(event) = self.reader.pop() {
                return Ok(Some(event));
            }
            if self.is_done {
                return Ok(None);
            }
            if let Some(kind) = self.reader.error {
                let message =
                    "The model's provider reported an error in the middle of its response: try again.";
                return Err(ModelError { kind, message: message.to_owned() });
            }
            match tokio::time::timeout(self.idle, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.push(&chunk)?,
                Ok(Ok(None)) => return self.finish().map(Some),
                // The response is complete: how the connection ends does not matter.
                Ok(Err(_)) if self.reader.is_complete => return self.finish().map(Some),
                Ok(Err(_)) => return Err(truncated_response()),
                Err(_) => return Err(timeout()),
            }
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        let events = self.decoder.as_mut().map(|decoder| decoder.push(chunk)).unwrap_or_default();
        for event in events {
            self.read(&event.map_err(|_| malformed())?);
        }
        if self.bytes > MAX_RESPONSE_BYTES || self.reader.is_too_large() {
            let message = "The model's response is too long, and was cut off.".to_owned();
            return Err(ModelError { kind: ModelErrorKind::TooLarge, message });
        }
        Ok(())
    }

    fn read(&mut self, event: &Value) {
        (self.read)(&mut self.reader, event);
        let calls = self.assembler.as_mut().map(|assembler| assembler.push(event)).unwrap_or_default();
        for call in calls {
            self.has_calls = true;
            self.reader.call(call);
        }
    }

    /// Ends the response: the rest of the last event, unfinished calls, and the finish reason.
    fn finish(&mut self) -> Result<ModelEvent, ModelError> {
        self.is_done = true;
        if let Some(last) = self.decoder.take().and_then(FrameDecoder::finish) {
            self.read(&last.map_err(|_| malformed())?);
        }
        if !self.reader.is_complete {
            return Err(truncated_response());
        }
        for call in self.assembler.take().map(Assembler::finish).unwrap_or_default() {
            self.has_calls = true;
            self.reader.call(call);
        }
        self.reader.end_part(None);
        let finish = match self.reader.finish {
            // Gemini and Ollama have no finish reason for calls.
            Some(FinishReason::Stop) | None if self.has_calls => FinishReason::ToolCalls,
            finish => finish.unwrap_or(FinishReason::Stop),
        };
        self.reader.finished(finish);
        self.reader.pop().ok_or_else(malformed)
    }
}

fn truncated_response() -> ModelError {
    let message = "The connection to the model ended before its response did: try again.".to_owned();
    ModelError { kind: ModelErrorKind::Cut, message }
}

fn timeout() -> ModelError {
    let message = "The model did not respond in time: try again, or raise the time limit.".to_owned();
    ModelError { kind: ModelErrorKind::Timeout, message }
}

fn malformed() -> ModelError {
    let message =
        "The model's response is not what its API promises: check `provider` and `base_url` in [agent].";
    ModelError { kind: ModelErrorKind::Malformed, message: message.to_owned() }
}
