//! One connection: HTTP/1.1 by hyper, with the idle timeout and the end at shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::app::App;
use crate::connection_table::{Admitted, ConnectionClass};
use crate::counters::Counters;
use crate::problem::{ErrorForm, Kind, Problem};
use crate::request_id;
use crate::service::{Connection, respond};
use crate::write_timeout::WriteTimeout;

/// Hyper's own limits on a request's head. Ours are lower, and exceeding them gives a problem response.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Hyper allocates room for so many headers with every request.
const MAX_HEADERS: usize = 128;
/// Timeout for writing the response to a request whose head timed out.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(100);

pub(crate) async fn serve_connection(app: Arc<App>, stream: TcpStream, peer: SocketAddr, admitted: Admitted) {
    let _counted = Counters::begin(&app.counters.connections);
    let _ = stream.set_nodelay(true);
    let idle = &admitted.idle;
    let connection = Connection { peer: &peer.to_string(), idle, class: admitted.class };
    let service = service_fn(|request| {
        let (app, connection) = (&app, &connection);
        async move { Ok::<_, Infallible>(respond(app, connection, request).await) }
    });
    let mut builder = http1::Builder::new();
    let headers = MAX_HEADERS.max(app.options.limits.headers + 1);
    builder.max_header_size(MAX_HEAD_BYTES).max_headers(headers);
    builder.keep_alive(admitted.class == ConnectionClass::Regular);
    let stream = WriteTimeout::new(stream, app.options.limits.write_timeout);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut shutdown = pin!(app.shutdown_requested());
    let mut is_shutting_down = false;
    loop {
        tokio::select! {
            biased;
            // An error is the client's: it has closed the connection, or did not send HTTP.
            _ = &mut connection => return,
            () = &mut shutdown, if !is_shutting_down => {
                is_shutting_down = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
            () = idle.expired() => break,
        }
    }
    // Nothing is left of a connection that has become a WebSocket.
    let Some(parts) = connection.into_parts() else { return };
    // A request that has begun gets a response; an idle connection is closed without one.
    if !parts.read_buf.is_empty() && !idle.is_closed() {
        let stream = parts.io.into_inner().into_inner();
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, refuse_slow_head(&app, idle.timeout(), stream)).await;
    }
}

/// Answers a request whose head did not arrive in time.
async fn refuse_slow_head(app: &App, timeout: Duration, mut stream: TcpStream) -> std::io::Result<()> {
    let detail = format!("The request's head took longer than {} s.", timeout.as_secs());
    let id = app.request_ids.for_request(&hyper::HeaderMap::new());
    let mut response = Problem::new(Kind::SLOW_REQUEST, detail).response(&id, ErrorForm::Problem);
    response.headers_mut().insert(&request_id::HEADER, id);
    app.counters.count(response.status().as_u16());
    let mut text = b"HTTP/1.1 408 Request Timeout\r\n".to_vec();
    for (name, value) in response.headers() {
        text.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let body = response.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    text.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    text.extend_from_slice(&body);
    stream.write_all(&text).await?;
    stream.shutdown().await
}
