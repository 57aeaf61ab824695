//! A connection's stream whose writes fail when the client reads nothing for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Writes to `stream`, and fails once a write has made no progress for `timeout`.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// Runs while a write waits for the client.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    pub fn into_inner(self) -> S {
        self.stream
    }

    /// The result of an attempt to write; while it waits, the error once the deadline has passed.
    fn limit<T>(&mut self, attempt: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.deadline = None;
            return attempt;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(attempt, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(attempt, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(context);
        self.limit(attempt, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(attempt, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_write_fails_when_the_client_reads_nothing() {
        let (server, _client) = tokio::io::duplex(8);
        let mut server = WriteTimeout::new(server, Duration::from_millis(50));
        let error = server.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (server, mut client) = tokio::io::duplex(8);
        let mut server = WriteTimeout::new(server, Duration::from_millis(500));
        let reading = tokio::spawn(async move {
            let mut read = 0;
            // All of it takes longer than the timeout.
            while read < 64 {
                tokio::time::sleep(Duration::from_millis(80)).await;
                read += client.read(&mut [0; 8]).await.unwrap();
            }
        });
        server.write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }
}
