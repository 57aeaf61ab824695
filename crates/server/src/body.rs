//! Request bodies, read within the limits, and responses with whole or streamed bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::chunk_queue::Chunks;
use crate::problem::{Kind, Problem};

/// How much of a refused body is still read, so that the client sees the response rather than a reset.
const MAX_DRAIN_BYTES: usize = 16 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a response: whole, or a stream.
pub(crate) type Body = Either<Full<Bytes>, StreamedBody>;
type StreamedBody = UnsyncBoxBody<Bytes, Infallible>;

/// A response with status 200 and a whole body.
pub(crate) fn response(media_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    with_media_type(media_type, Either::Left(Full::new(body.into())))
}

/// A response whose body consists of the chunks of a queue.
pub(crate) fn stream(media_type: &'static str, chunks: Chunks) -> Response<Body> {
    let frames = UnboundedReceiverStream::new(chunks).map(|(chunk, _room)| Ok(Frame::data(chunk)));
    with_media_type(media_type, Either::Right(StreamBody::new(frames).boxed_unsync()))
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

/// A streamed body that also ends when `ended` resolves. `guard` is dropped with it: at its end, or when its client has
/// disconnected. A whole body stays as it is.
pub(crate) fn end_with(
    body: Body,
    ended: impl Future<Output = ()> + Send + 'static,
    guard: impl Send + Unpin + 'static,
) -> Body {
    let body = match body {
        Either::Right(stream) if stream.size_hint().exact().is_none() => stream,
        whole => return whole,
    };
    Either::Right(UntilEnded { body, ended: Box::pin(ended), _guard: guard }.boxed_unsync())
}

struct UntilEnded<G> {
    body: StreamedBody,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    _guard: G,
}

impl<G: Unpin> hyper::body::Body for UntilEnded<G> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// The maximum size of a body, and the name of its setting.
pub(crate) struct SizeLimit {
    pub bytes: usize,
    pub setting: &'static str,
}

/// Reads a whole body within the limits.
pub(crate) async fn read(
    body: &mut Incoming,
    SizeLimit { bytes: max_bytes, setting }: SizeLimit,
    read_timeout: Duration,
) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        let detail = format!(
            "The request body is larger than {max_bytes} bytes: send less, or raise `[server] {setting}`."
        );
        Problem::new(Kind::TOO_LARGE, detail)
    };
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    let whole = Limited::new(body, max_bytes).collect();
    match timeout(read_timeout, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            let detail = format!("The body could not be read to its end: {error}.");
            Err(Problem::new(Kind::BAD_REQUEST, detail))
        }
        Err(_) => {
            let detail = format!("The request's body took longer than {} s.", read_timeout.as_secs());
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
