//! The HTTP side of a server over streamable HTTP. It differs from the client of `rmcp` in one point: bodies and events
//! are bounded while they are read.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::connect_problem::HttpProblem;
use crate::event_size::EventSize;
use crate::exact_numbers::{exact_message, parse_message};
use crate::limits::{LimitExceeded, Limits};

type Error = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Debug, Clone)]
pub(crate) struct BoundedHttpClient {
    pub client: reqwest::Client,
    pub limits: Limits,
    pub limit_exceeded: LimitExceeded,
    pub problem: HttpProblem,
}

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let has_session = session.is_some();
        let body = serde_json::to_vec(&message)?;
        let request = self.client.post(&*uri).header(CONTENT_TYPE, JSON_MIME_TYPE).body(body);
        self.problem.clear();
        let sent = prepare(request, session, token, headers)?.send().await;
        let response = sent.map_err(|error| {
            self.problem.record_unanswered(&uri, &error);
            Error::Client(error)
        })?;
        let status = response.status();
        if !status.is_success() {
            self.problem.record_status(&uri, status);
        }
        check_authorization(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Error::SessionExpired);
        }
        let id = response.headers().get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok());
        let id = id.map(str::to_owned);
        if !status.is_success() {
            return self.read_error(response, &message, has_session).await;
        }
        let needs_reply = matches!(message, ClientJsonRpcMessage::Request(_));
        match media_type(response.headers()) {
            Some(EVENT_STREAM_MIME_TYPE) => Ok(StreamableHttpPostResponse::Sse(self.events(response), id)),
            Some(JSON_MIME_TYPE) => match parse_message(&self.read_body(response).await?) {
                Ok(reply) => Ok(StreamableHttpPostResponse::Json(reply, id)),
                Err(_) if !needs_reply => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => Err(error.into()),
            },
            // Some servers answer a notification with an empty 200 instead of a 202.
            _ if !needs_reply && response.content_length() == Some(0) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            other => {
                self.problem.record_media_type(&uri, other);
                Err(Error::UnexpectedContentType(other.map(str::to_owned)))
            }
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        let mut request = prepare(self.client.get(&*uri), session, token, headers)?;
        if let Some(last_event) = last_event {
            request = request.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let response = request.send().await.map_err(Error::Client)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(Error::ServerDoesNotSupportSse);
        }
        check_authorization(&response)?;
        check_status(&response)?;
        let response = response.error_for_status().map_err(Error::Client)?;
        match media_type(response.headers()) {
            Some(EVENT_STREAM_MIME_TYPE | JSON_MIME_TYPE) => Ok(self.events(response)),
            other => Err(Error::UnexpectedContentType(other.map(str::to_owned))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        let response = prepare(self.client.delete(&*uri), Some(session), token, headers)?.send().await;
        let response = response.map_err(Error::Client)?;
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.error_for_status().map_err(Error::Client)?;
        }
        Ok(())
    }
}

impl BoundedHttpClient {
    /// Reads the response to a message that was not accepted: a JSON-RPC error, if there is one.
    async fn read_error(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let is_json = media_type(response.headers()) == Some(JSON_MIME_TYPE);
        let status_error = check_status(&response).err();
        if let Some(error) = status_error.filter(|_| !is_json || status == StatusCode::TOO_MANY_REQUESTS) {
            return Err(error);
        }
        let body = self.read_body(response).await?;
        let is_authorization = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let error = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) if !is_authorization => Some(error),
            _ => None,
        };
        // A server of an older revision does not know `server/discover`, and may refuse it without the request's id.
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && !(has_session || is_authorization)
            && status.is_client_error()
        {
            let refused = || ErrorData::invalid_request(format!("HTTP {status}"), None);
            let error = error.map_or_else(refused, |error| error.error);
            let reply = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(reply, None));
        }
        match error {
            Some(error) if is_json => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
            }
            _ => Err(Error::UnexpectedServerResponse(format!("HTTP {status}").into())),
        }
    }

    /// Reads a body up to the limit of a message, whatever its `content-length` says.
    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(Error::Client)? {
            if chunk.len() > self.limits.message_bytes().saturating_sub(body.len()) {
                return Err(Error::UnexpectedServerResponse(
                    self.limit_exceeded.report_message(&self.limits).into(),
                ));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The events of a response, each up to the limit of a message.
    fn events(&self, response: Response) -> Events {
        let mut size = EventSize::new(self.limits.message_bytes());
        let (limits, limit_exceeded) = (self.limits.clone(), self.limit_exceeded.clone());
        let chunks = stream::try_unfold(response, async |mut response| {
            let chunk = response.chunk().await.map_err(io::Error::other)?;
            Ok(chunk.map(|chunk| (chunk, response)))
        });
        let bounded = chunks.map(move |chunk: io::Result<_>| match chunk? {
            chunk if size.add(&chunk) => Ok(chunk),
            _ => Err(io::Error::other(limit_exceeded.report_message(&limits))),
        });
        let exact = |event: Result<Sse, SseError>| {
            let mut event = event?;
            let data = event.data.as_deref().and_then(|data| exact_message(data.as_bytes()));
            event.data = data.or(event.data);
            Ok(event)
        };
        SseStream::from_bytes_stream(bounded).map(exact).boxed()
    }
}

/// Adds the headers. Those of the configuration may not replace those of the protocol.
fn prepare(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
) -> Result<RequestBuilder, Error> {
    let mut request = request.header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"));
    for (name, value) in headers {
        let is_reserved = |reserved: &&str| name.as_str().eq_ignore_ascii_case(reserved);
        if [ACCEPT.as_str(), HEADER_SESSION_ID, HEADER_LAST_EVENT_ID].iter().any(is_reserved) {
            return Err(Error::ReservedHeaderConflict(name.to_string()));
        }
        request = request.header(name, value);
    }
    if let Some(session) = session {
        request = request.header(HEADER_SESSION_ID, &*session);
    }
    Ok(match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    })
}

fn check_authorization(response: &Response) -> Result<(), Error> {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    match (response.status(), challenge) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(challenge)) => {
            Err(Error::AuthRequired(AuthRequiredError::new(challenge.to_owned())))
        }
        _ => Ok(()),
    }
}

/// Refuses 429 and 5xx.
fn check_status(response: &Response) -> Result<(), Error> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return Ok(());
    }
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Err(HttpStatusError::new(status.as_u16(), retry_after.map(str::to_owned)).into())
}

/// The content type, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next().map(str::trim)
}
