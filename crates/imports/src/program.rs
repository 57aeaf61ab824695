//! A server that is a program: MCP on its standard streams, its standard error in the log.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

use crate::exact_numbers::exact_message;
use crate::limits::{LimitExceeded, Limits};

/// The time for a program to exit after its standard input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// The length at which lines of a program's standard error are split.
const MAX_LINE_BYTES: u64 = 4096;
const STDERR_WINDOW: Duration = Duration::from_secs(60);

/// A running program. Dropping it kills the program.
pub(crate) struct Program {
    child: Child,
    streams: AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin>,
    limit_exceeded: LimitExceeded,
}

impl Program {
    /// Takes over the standard streams of a child, which must be pipes.
    pub fn new(
        mut child: Child,
        server: &str,
        limits: &Limits,
        limit_exceeded: &LimitExceeded,
    ) -> io::Result<Self> {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its standard streams are not pipes"));
        };
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(log_stderr(server.to_owned(), stderr, limits.stderr_kb.saturating_mul(1024)));
        }
        let lines = BoundedLines::new(stdout, limits, limit_exceeded);
        // The lines are bounded already.
        let streams = AsyncRwTransport::new(lines, stdin).with_max_line_length(usize::MAX);
        Ok(Self { child, streams, limit_exceeded: limit_exceeded.clone() })
    }
}

impl Transport<RoleClient> for Program {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.streams.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.streams.receive()
    }

    /// Closes the program's standard input and waits for its exit. A program that does not exit is killed.
    async fn close(&mut self) -> io::Result<()> {
        self.streams.close().await?;
        let is_trusted_to_exit = self.limit_exceeded.get().is_none();
        if is_trusted_to_exit && timeout(EXIT_TIMEOUT, self.child.wait()).await.is_ok() {
            return Ok(());
        }
        self.child.kill().await
    }
}

/// Passes on whole lines, with exact numbers. Fails as soon as a line is longer than the limit of a message.
struct BoundedLines<R> {
    inner: BufReader<R>,
    /// The line that has not ended.
    line: Vec<u8>,
    /// A line that has ended, and how much of it was passed on.
    ended: Cursor<Vec<u8>>,
    limits: Limits,
    limit_exceeded: LimitExceeded,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    fn new(inner: R, limits: &Limits, limit_exceeded: &LimitExceeded) -> Self {
        let (line, ended) = (Vec::new(), Cursor::default());
        Self {
            inner: BufReader::new(inner),
            line,
            ended,
            limits: limits.clone(),
            limit_exceeded: limit_exceeded.clone(),
        }
    }

    /// Reads until a line ends, or the stream.
    fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let read = ready!(Pin::new(&mut self.inner).poll_fill_buf(context))?;
            let length = read.iter().position(|byte| *byte == b'\n').map_or(read.len(), |end| end + 1);
            if length > self.limits.message_bytes().saturating_sub(self.line.len()) {
                return Poll::Ready(Err(io::Error::other(self.limit_exceeded.report_message(&self.limits))));
            }
            self.line.extend_from_slice(&read[..length]);
            Pin::new(&mut self.inner).consume(length);
            if length == 0 || self.line.ends_with(b"\n") {
                break;
            }
        }
        let line = std::mem::take(&mut self.line);
        let exact = exact_message(&line).map(|message| format!("{message}\n").into_bytes());
        self.ended = Cursor::new(exact.unwrap_or(line));
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.position() == self.ended.get_ref().len() as u64 {
            ready!(self.poll_line(context))?;
        }
        Pin::new(&mut self.ended).poll_read(context, buffer)
    }
}

/// Logs the lines of a program's standard error, up to `max_bytes` in a minute.
async fn log_stderr(server: String, stderr: impl AsyncRead + Unpin, max_bytes: usize) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    let (mut window_start, mut logged, mut dropped) = (Instant::now(), 0, 0);
    loop {
        line.clear();
        match (&mut stderr).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if window_start.elapsed() >= STDERR_WINDOW {
            if dropped > 0 {
                tracing::warn!(target: "toolwright::mcp", server, "{dropped} bytes of its standard error were not logged");
            }
            (window_start, logged, dropped) = (Instant::now(), 0, 0);
        }
        if logged + line.len() <= max_bytes {
            logged += line.len();
            tracing::info!(target: "toolwright::mcp", server, "{}", String::from_utf8_lossy(&line).trim_end());
        } else {
            if dropped == 0 {
                let limit = max_bytes / 1024;
                tracing::warn!(target: "toolwright::mcp", server,
                    "it wrote more than {limit} KiB to its standard error within a minute (`stderr_kb` in its \
                     `[mcp_servers.limits]`); the rest is not logged");
            }
            dropped += line.len();
        }
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
