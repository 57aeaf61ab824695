//! Request bodies, read within the limits, and the kinds of response bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::idle::RestartOnDrop;
use crate::options::Limits;
use crate::problem::{Kind, Problem};

/// How much of a refused body is still read, so that the client sees the response rather than a reset.
const MAX_DRAIN_BYTES: usize = 8 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// `None` when empty, or sent.
    Whole(Option<Bytes>),
    /// Chunks from a channel.
    Stream(mpsc::Receiver<Bytes>),
    /// A body of another library.
    Boxed(BoxBody<Bytes, Infallible>),
    /// A stream that restarts the idle timer of its connection when it ends.
    Guarded(Box<Body>, #[allow(dead_code, reason = "used when it is dropped")] RestartOnDrop),
}

impl Body {
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub const fn empty() -> Self {
        Self::Whole(None)
    }

    /// Whether its length is unknown.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Stream(_) => true,
            Self::Boxed(body) => body.size_hint().exact().is_none(),
            Self::Guarded(..) => true,
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Stream(_) => 0,
            Self::Boxed(body) => body.size_hint().exact().unwrap_or(0),
            Self::Guarded(body, _) => body.size(),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
            Self::Boxed(body) => Pin::new(body).poll_frame(context),
            Self::Guarded(body, _) => Pin::new(&mut **body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(_) => false,
            Self::Boxed(body) => body.is_end_stream(),
            Self::Guarded(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(_) => SizeHint::with_exact(self.size()),
            Self::Stream(_) => SizeHint::default(),
            Self::Boxed(body) => body.size_hint(),
            Self::Guarded(body, _) => body.size_hint(),
        }
    }
}

/// Reads a whole body within the limits.
pub(crate) async fn read(body: &mut Incoming, limits: &Limits) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large(limits));
    }
    timeout(limits.body_timeout, collect(body, limits)).await.unwrap_or_else(|_| {
        let detail = format!("The request's body took longer than {} s.", limits.body_timeout.as_secs());
        Err(Problem::new(Kind::SlowRequest, detail))
    })
}

async fn collect(body: &mut Incoming, limits: &Limits) -> Result<Bytes, Problem> {
    let Some(first) = next_chunk(body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return if first.len() > limits.body_bytes { Err(too_large(limits)) } else { Ok(first) };
    }
    let mut whole = BytesMut::from(first);
    while let Some(next) = next_chunk(body).await? {
        if whole.len() + next.len() > limits.body_bytes {
            return Err(too_large(limits));
        }
        whole.extend_from_slice(&next);
    }
    Ok(whole.freeze())
}

/// The next chunk of data; trailers are skipped.
async fn next_chunk(body: &mut Incoming) -> Result<Option<Bytes>, Problem> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let detail = format!("The body could not be read to its end: {error}.");
                return Err(Problem::new(Kind::BadRequest, detail));
            }
        }
    }
}

/// Reads and drops the rest of a refused body, within limits.
pub(crate) async fn drain(body: &mut Incoming) {
    if body.is_end_stream() || body.size_hint().lower() > MAX_DRAIN_BYTES as u64 {
        return;
    }
    let mut left = MAX_DRAIN_BYTES;
    let all = async {
        while let Ok(Some(next)) = next_chunk(body).await {
            left = left.saturating_sub(next.len());
            if left == 0 {
                return;
            }
        }
    };
    // A slower client gets a reset.
    let _ = timeout(DRAIN_TIMEOUT, all).await;
}

fn too_large(limits: &Limits) -> Problem {
    Problem::new(Kind::TooLarge, format!("A request body may have {} bytes.", limits.body_bytes))
}
