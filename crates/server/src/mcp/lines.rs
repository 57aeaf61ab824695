//! Messages over a pipe, a line each. The library's own transport passes over what is no JSON; here it is answered, as
//! JSON-RPC asks.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use serde_json::error::Category;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// Of one message.
const LONGEST: usize = 16 << 20;

pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// What has come of the next line: reading may be interrupted anywhere.
    line: Vec<u8>,
    is_too_long: bool,
    write: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub fn new((read, write): (R, W)) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        Self { read: BufReader::new(read), line: Vec::new(), is_too_long: false, write }
    }

    /// The next line; nothing in place of one that is too long. `None` at the end of the pipe.
    async fn next(&mut self) -> io::Result<Option<Option<Vec<u8>>>> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.is_too_long |= self.line.len() + taken > LONGEST;
            if self.is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.read.consume(taken);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some((!std::mem::take(&mut self.is_too_long)).then_some(line)));
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&text).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let line = self.next().await.inspect_err(|error| tracing::error!("{error}")).ok()??;
            let refusal = match line.as_deref().map(parse) {
                Some(Ok(message)) => return Some(message),
                Some(Err(None)) => continue,
                Some(Err(Some(refusal))) => *refusal,
                None => {
                    (ErrorData::invalid_request(format!("At most {LONGEST} bytes are read."), None), None)
                }
            };
            // By a task of its own: this one may be interrupted, and half a line must not be written.
            tokio::spawn(self.send(TxJsonRpcMessage::<RoleServer>::error(refusal.0, refusal.1)));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}

/// The answer to what is no message, and the request that it belongs to.
type Refusal = (ErrorData, Option<RequestId>);

/// Nothing is answered to an empty line, nor to a notification that is not known.
fn parse(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Box<Refusal>>> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Err(None);
    }
    serde_json::from_slice(line).map_err(|error| match error.classify() {
        Category::Syntax | Category::Eof => {
            Some(Box::new((ErrorData::parse_error(format!("This line is no JSON: {error}."), None), None)))
        }
        Category::Data | Category::Io => {
            let value: Value = serde_json::from_slice(line).ok()?;
            if value.get("method").is_some() && value.get("id").is_none() {
                return None;
            }
            let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
            Some(Box::new((ErrorData::invalid_request("This is no message of MCP.", None), id)))
        }
    })
}
