//! Request bodies, read within the limits, and responses with whole or streamed bodies.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use crate::idle::RestartOnDrop;
use crate::options::Limits;
use crate::problem::{Kind, Problem};

/// How much of a refused body is still read, so that the client sees the response rather than a reset.
const MAX_DRAIN_BYTES: usize = 8 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a response: whole, or a stream.
pub(crate) type Body = Either<Full<Bytes>, BoxBody<Bytes, Infallible>>;

/// A response with status 200 and a whole body.
pub(crate) fn response(media_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    with_media_type(media_type, Either::Left(Full::new(body.into())))
}

/// A response whose body consists of the chunks of a channel.
pub(crate) fn stream(media_type: &'static str, chunks: mpsc::Receiver<Bytes>) -> Response<Body> {
    let frames = ReceiverStream::new(chunks).map(|chunk| Ok(Frame::data(chunk)));
    with_media_type(media_type, Either::Right(StreamBody::new(frames).boxed()))
}

fn with_media_type(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

pub(crate) fn no_content() -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Restarts the idle timer when a streamed body has ended, or its client has disconnected.
pub(crate) fn restart_after(body: Body, restart: RestartOnDrop) -> Body {
    let Either::Right(stream) = body else { return body };
    let keep_restart = move |frame| {
        let _ = &restart;
        frame
    };
    Either::Right(stream.map_frame(keep_restart).boxed())
}

/// Reads a whole body within the limits.
pub(crate) async fn read(body: &mut Incoming, limits: &Limits) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large =
        || Problem::new(Kind::TOO_LARGE, format!("A request body may have {} bytes.", limits.body_bytes));
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large());
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match timeout(limits.body_timeout, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            let detail = format!("The body could not be read to its end: {error}.");
            Err(Problem::new(Kind::BAD_REQUEST, detail))
        }
        Err(_) => {
            let detail = format!("The request's body took longer than {} s.", limits.body_timeout.as_secs());
            Err(Problem::new(Kind::SLOW_REQUEST, detail))
        }
    }
}

/// Reads and drops the rest of a refused body, within limits.
pub(crate) async fn drain(body: &mut Incoming) {
    if body.is_end_stream() || body.size_hint().lower() > MAX_DRAIN_BYTES as u64 {
        return;
    }
    let mut rest = Limited::new(body, MAX_DRAIN_BYTES);
    let all = async { while let Some(Ok(_)) = rest.frame().await {} };
    // A slower client gets a reset.
    let _ = timeout(DRAIN_TIMEOUT, all).await;
}
