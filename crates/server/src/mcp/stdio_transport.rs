//! Messages over a pipe, one per line. Unlike the library's own transport, it replies to lines that are not messages,
//! as JSON-RPC requires.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorData, JsonRpcError};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::message;

const MAX_LINE_BYTES: usize = 16 << 20;

pub(super) struct StdioTransport<R, W> {
    reader: BufReader<R>,
    /// The part of the next line that has arrived: reading may be cancelled anywhere.
    partial: Vec<u8>,
    is_too_long: bool,
    writer: Arc<Mutex<Option<W>>>,
}

enum Line {
    Complete(Vec<u8>),
    TooLong,
}

impl<R: AsyncRead + Unpin, W> StdioTransport<R, W> {
    pub fn new((reader, writer): (R, W)) -> Self {
        let writer = Arc::new(Mutex::new(Some(writer)));
        Self { reader: BufReader::new(reader), partial: Vec::new(), is_too_long: false, writer }
    }

    /// `None` at the end of the pipe.
    async fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let room = (MAX_LINE_BYTES - self.partial.len()) as u64;
            let count = (&mut self.reader).take(room).read_until(b'\n', &mut self.partial).await?;
            let part = std::mem::take(&mut self.partial);
            if part.ends_with(b"\n") {
                let is_too_long = std::mem::take(&mut self.is_too_long);
                return Ok(Some(if is_too_long { Line::TooLong } else { Line::Complete(part) }));
            }
            if count == 0 {
                return Ok(None);
            }
            // The end of the pipe, or of the room for a line.
            self.is_too_long = true;
        }
    }
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&text).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let line = self.next_line().await;
            let line = line.inspect_err(|error| tracing::error!("could not read from the MCP host: {error}"));
            let parsed = match line.ok()?? {
                Line::Complete(line) => message::parse(&line),
                Line::TooLong => {
                    let message = format!("The message has more than {MAX_LINE_BYTES} bytes.");
                    Err(Box::new(JsonRpcError::new(None, ErrorData::invalid_request(message, None))))
                }
            };
            match parsed {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                // In its own task: this one may be cancelled, and a line must be written whole.
                Err(error) => drop(tokio::spawn(self.send(TxJsonRpcMessage::<RoleServer>::Error(*error)))),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.take();
        Ok(())
    }
}
