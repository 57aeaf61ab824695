//! Bodies: those that come in, with their limits, and the forms of those that go out.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::deadline::{Streaming, Watched};
use crate::options::Limits;
use crate::problem::{Kind, Problem};

/// Of a body that is refused, so much is still read, so that the client sees the answer rather than a reset.
const DRAINED: usize = 8 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// Until it was sent.
    Whole(Option<Bytes>),
    /// Pieces as they come.
    Stream(mpsc::Receiver<Bytes>),
    /// What another library has made: whole, or pieces as they come.
    Boxed(BoxBody<Bytes, Infallible>),
    /// A stream on a connection that is watched over.
    Watched(Box<Body>, #[allow(dead_code, reason = "it is held, not used")] Streaming),
}

impl Body {
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub const fn empty() -> Self {
        Self::Whole(None)
    }

    /// Whether it goes on for as long as it likes.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Stream(_) => true,
            Self::Boxed(body) => body.size_hint().exact().is_none(),
            Self::Watched(..) => true,
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Stream(_) => 0,
            Self::Boxed(body) => body.size_hint().exact().unwrap_or(0),
            Self::Watched(body, _) => body.size(),
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
            Self::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
            Self::Boxed(body) => Pin::new(body).poll_frame(context),
            Self::Watched(body, _) => Pin::new(&mut **body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(_) => false,
            Self::Boxed(body) => body.is_end_stream(),
            Self::Watched(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(_) => SizeHint::with_exact(self.size()),
            Self::Stream(_) => SizeHint::default(),
            Self::Boxed(body) => body.size_hint(),
            Self::Watched(body, _) => body.size_hint(),
        }
    }
}

/// Reads a body to its end, within the limits.
pub(crate) async fn read(
    body: &mut Incoming,
    limits: &Limits,
    watched: &Watched<'_>,
) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large(limits));
    }
    watched.awaits_body();
    let mut whole = pin!(collect(body, limits));
    let read = poll_fn(|context| match whole.as_mut().poll(context) {
        Poll::Pending if watched.is_late() => Poll::Ready(Err(slow(limits))),
        poll => poll,
    })
    .await;
    watched.works();
    read
}

fn slow(limits: &Limits) -> Problem {
    Problem::new(Kind::SlowRequest, format!("The body took longer than {} s.", limits.body_timeout.as_secs()))
}

async fn collect(body: &mut Incoming, limits: &Limits) -> Result<Bytes, Problem> {
    let Some(first) = piece(body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return if first.len() > limits.body_bytes { Err(too_large(limits)) } else { Ok(first) };
    }
    let mut whole = BytesMut::from(first);
    while let Some(next) = piece(body).await? {
        if whole.len() + next.len() > limits.body_bytes {
            return Err(too_large(limits));
        }
        whole.extend_from_slice(&next);
    }
    Ok(whole.freeze())
}

/// The next piece of data; trailers are passed over.
async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, Problem> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let detail = format!("The body did not arrive whole: {error}.");
                return Err(Problem::new(Kind::BadRequest, detail));
            }
        }
    }
}

/// Reads what is left of a body that is not wanted, up to a bound.
pub(crate) async fn drain(body: &mut Incoming) {
    if body.is_end_stream() || body.size_hint().lower() > DRAINED as u64 {
        return;
    }
    let mut left = DRAINED;
    let all = async {
        while let Ok(Some(next)) = piece(body).await {
            left = left.saturating_sub(next.len());
            if left == 0 {
                return;
            }
        }
    };
    // Whoever is slower than that is cut off.
    let _ = timeout(DRAIN_TIME, all).await;
}

fn too_large(limits: &Limits) -> Problem {
    Problem::new(Kind::TooLarge, format!("At most {} bytes are read.", limits.body_bytes))
}
