//! A voice model in the form of Gemini Live: it takes audio, and speaks without end in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// The frames of audio that the model received (20 ms each) and sent (40 ms each).
#[derive(Debug, Default)]
pub struct Counts {
    pub heard: AtomicU64,
    pub said: AtomicU64,
}

/// Serves until the process ends. Returns its address.
pub async fn serve(counts: Arc<Counts>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = format!("ws://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&counts)));
        }
    });
    address
}

async fn converse(stream: TcpStream, counts: Arc<Counts>) {
    let Ok(socket) = accept_async(stream).await else { return };
    let (mut sink, mut frames) = socket.split();
    let _setup = frames.next().await;
    if sink.send(Message::text(r#"{"setupComplete":{}}"#)).await.is_err() {
        return;
    }
    // 40 ms at 24 kHz, a quiet saw tooth: 1920 bytes, 2560 in base64.
    let data = "AAQABAAI".repeat(320);
    let part = format!(r#"{{"inlineData":{{"mimeType":"audio/pcm;rate=24000","data":"{data}"}}}}"#);
    let speech = Message::text(format!(r#"{{"serverContent":{{"modelTurn":{{"parts":[{part}]}}}}}}"#));
    let mut clock = tokio::time::interval(Duration::from_millis(40));
    loop {
        tokio::select! {
            _ = clock.tick() => {
                if sink.send(speech.clone()).await.is_err() {
                    return;
                }
                counts.said.fetch_add(1, Ordering::Relaxed);
            }
            frame = frames.next() => match frame {
                Some(Ok(Message::Text(text))) if text.contains("realtimeInput") => {
                    counts.heard.fetch_add(1, Ordering::Relaxed);
                }
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}
