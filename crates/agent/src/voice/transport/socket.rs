//! The socket to a provider: connects, reads, writes in a separate task, sends pings.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Request};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Bytes, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use super::write_queue::{Queued, WriteQueue};
use super::{Codec, CodecOutput, Command, ConnectionSetup, Event, ToolUse, VoiceProvider};

/// Timeout for the setup of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for writes: a provider that accepts nothing for this long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for the provider's close frame after ours.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Timeout for reads: without any frame for this long, the connection is half-open.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which a model that speaks only while it receives audio gets some.
const CLOCK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum duration of queued microphone audio, in seconds.
const MAX_WAITING_AUDIO_S: usize = 4;
const MAX_INCOMING_BYTES: usize = 4 << 20;
const BUFFER_BYTES: usize = 8 << 10;

trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

type Socket = WebSocketStream<Box<dyn ByteStream>>;

/// The address and the key of a provider.
pub(crate) struct Endpoint {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Only for `wss`.
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Endpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Why there is no connection. The detail is for the operator only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct ConnectError {
    /// Retrying does not help: the key or the request was refused.
    pub is_refused: bool,
    pub detail: String,
}

impl ConnectError {
    fn retryable(detail: impl Into<String>) -> Self {
        Self { is_refused: false, detail: detail.into() }
    }
}

impl Endpoint {
    /// Checks address and key; does not connect.
    pub fn new(
        provider: &VoiceProvider,
        model: &str,
        base: Option<&str>,
        key: Option<&str>,
        tls: impl FnOnce() -> Result<ClientConfig, String>,
    ) -> Result<Self, String> {
        let base = base.unwrap_or(provider.url).trim_end_matches('/');
        let url = Url::parse(&format!("{base}{}", (provider.path)(model)));
        let url = url.ok().filter(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host());
        let url = url.ok_or_else(|| format!("`url` must be a ws or wss URL, not `{base}`"))?;
        let mut headers = Vec::new();
        for (name, value) in (provider.headers)(key.unwrap_or_default()) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| "the key contains characters that no HTTP header can have".to_owned())?;
            value.set_sensitive(true);
            headers.push((HeaderName::from_static(name), value));
        }
        let tls = match url.scheme() {
            "wss" => Some(TlsConnector::from(Arc::new(tls()?))),
            _ => None,
        };
        Ok(Self { url, headers, tls })
    }

    fn request(&self) -> Result<Request<()>, ConnectError> {
        let request = self.url.as_str().into_client_request();
        let mut request = request.map_err(|error| ConnectError::retryable(error.to_string()))?;
        request.headers_mut().extend(self.headers.iter().cloned());
        Ok(request)
    }

    async fn stream(&self) -> Result<Box<dyn ByteStream>, ConnectError> {
        let unreachable = |error: std::io::Error| ConnectError::retryable(format!("cannot connect: {error}"));
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = self.url.port_or_known_default().unwrap_or(443);
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
        // Audio frames are sent immediately.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host).map_err(|error| ConnectError::retryable(error.to_string()))?;
        let stream = tls.connect(name, stream).await;
        Ok(Box::new(stream.map_err(|error| ConnectError::retryable(format!("TLS: {error}")))?))
    }

    async fn upgrade(&self) -> Result<Socket, ConnectError> {
        let (request, stream) = (self.request()?, self.stream().await?);
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES)
            .max_message_size(Some(MAX_INCOMING_BYTES))
            .max_frame_size(Some(MAX_INCOMING_BYTES));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => {
                let status = response.status();
                let is_refused = status.is_client_error() && status.as_u16() != 429;
                Err(ConnectError { is_refused, detail: format!("the server answers {status}") })
            }
            Err(error) => Err(ConnectError::retryable(error.to_string())),
        }
    }
}

/// A connection to a provider.
pub(crate) struct Connection {
    reader: SplitStream<Socket>,
    queue: Arc<WriteQueue>,
    codec: Box<dyn Codec>,
    output: CodecOutput,
    events: VecDeque<Event>,
    clock: Interval,
    last_frame: Instant,
    last_ping: Instant,
    is_closed: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connection").field("is_closed", &self.is_closed).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects and sets up the connection.
    pub async fn open(
        provider: &'static VoiceProvider,
        endpoint: &Endpoint,
        setup: ConnectionSetup,
    ) -> Result<Self, ConnectError> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, Self::set_up(provider, endpoint, setup)).await;
        opened.unwrap_or_else(|_| Err(ConnectError::retryable("the session was not set up in time")))
    }

    async fn set_up(
        provider: &'static VoiceProvider,
        endpoint: &Endpoint,
        setup: ConnectionSetup,
    ) -> Result<Self, ConnectError> {
        let (sink, reader) = endpoint.upgrade().await?.split();
        // In base64.
        let max_audio = provider.input_rate as usize * 2 * MAX_WAITING_AUDIO_S * 4 / 3;
        let queue = Arc::new(WriteQueue::new(max_audio));
        tokio::spawn(write(sink, Arc::clone(&queue)));
        let period = match provider.tools {
            ToolUse::Calls => PING_INTERVAL,
            ToolUse::Delegates => CLOCK_INTERVAL,
        };
        let mut clock = tokio::time::interval(period);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = Self {
            reader,
            queue,
            codec: (provider.codec)(setup),
            output: CodecOutput::default(),
            events: VecDeque::new(),
            clock,
            last_frame: Instant::now(),
            last_ping: Instant::now(),
            is_closed: false,
        };
        connection.codec.open(&mut connection.output);
        connection.flush();
        match connection.next().await {
            Event::Ready => Ok(connection),
            Event::Closed { reason } => Err(ConnectError { is_refused: true, detail: reason }),
            event => {
                Err(ConnectError::retryable(format!("unexpected before the session was set up: {event:?}")))
            }
        }
    }

    /// Queues audio. Returns the number of frames that were dropped because the provider is too slow.
    pub fn audio(&mut self, pcm: &[u8]) -> usize {
        self.codec.audio(pcm, &mut self.output);
        self.output.messages.drain(..).map(|text| self.queue.push_audio(text)).sum()
    }

    pub fn can_say_filler(&self) -> bool {
        self.codec.can_say_filler()
    }

    pub fn send(&mut self, command: Command) {
        let is_close = command == Command::Close;
        self.codec.command(command, &mut self.output);
        self.flush();
        if is_close {
            self.queue.close();
        }
    }

    /// Closes the connection after the queued messages. Reads until the end, because a socket that is closed with
    /// unread data is reset, and the provider would lose the last messages.
    pub fn close(mut self) {
        self.send(Command::Close);
        tokio::spawn(async move {
            let rest = async { while self.reader.next().await.is_some_and(|frame| frame.is_ok()) {} };
            // A provider that does not close is abandoned.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, rest).await;
        });
    }

    /// The next event; always [`Event::Closed`] once the connection has ended. Cancel-safe.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.events.pop_front() {
                self.is_closed |= matches!(event, Event::Closed { .. });
                return event;
            }
            if self.is_closed {
                return Event::Closed { reason: "the connection has ended".to_owned() };
            }
            tokio::select! {
                frame = self.reader.next() => self.read(frame),
                () = self.queue.failed() => self.end("nothing can be written"),
                _ = self.clock.tick() => self.tick(),
            }
        }
    }

    fn read(&mut self, frame: Option<Result<Message, tungstenite::Error>>) {
        self.last_frame = Instant::now();
        match frame {
            Some(Ok(Message::Text(text))) => self.message(text.as_bytes()),
            Some(Ok(Message::Binary(bytes))) => self.message(&bytes),
            Some(Ok(Message::Close(Some(frame)))) => self.end(&format!("{}: {}", frame.code, frame.reason)),
            Some(Ok(Message::Close(None))) | None => self.end("the provider closed the connection"),
            Some(Ok(_)) => {}
            Some(Err(error)) => self.end(&error.to_string()),
        }
    }

    fn message(&mut self, text: &[u8]) {
        match serde_json::from_slice::<Value>(text) {
            Ok(message) => self.codec.message(&message, &mut self.output),
            Err(error) => {
                self.output.events.push(Event::Warning(format!("a message that is not JSON: {error}")));
            }
        }
        self.flush();
    }

    fn tick(&mut self) {
        if self.last_frame.elapsed() > READ_TIMEOUT {
            return self.end("nothing was heard for 30 s");
        }
        if self.last_ping.elapsed() >= PING_INTERVAL {
            self.last_ping = Instant::now();
            self.queue.push(Queued::Ping);
        }
        self.codec.tick(&mut self.output);
        self.flush();
    }

    fn end(&mut self, reason: &str) {
        self.events.push_back(Event::Closed { reason: reason.to_owned() });
    }

    fn flush(&mut self) {
        self.output.messages.drain(..).for_each(|text| self.queue.push(Queued::Message(text)));
        self.events.extend(self.output.events.drain(..));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Writes queued messages until the queue is closed or the provider accepts nothing more.
async fn write(mut sink: SplitSink<Socket, Message>, queue: Arc<WriteQueue>) {
    while let Some(queued) = queue.next().await {
        let message = match queued {
            Queued::Audio(text) | Queued::Message(text) => Message::text(text),
            Queued::Ping => Message::Ping(Bytes::new()),
        };
        let sent = tokio::time::timeout(WRITE_TIMEOUT, sink.send(message)).await;
        if !matches!(sent, Ok(Ok(()))) {
            queue.fail();
            return;
        }
    }
    // The provider may be gone: nothing to report.
    let _ = tokio::time::timeout(WRITE_TIMEOUT, sink.close()).await;
}
