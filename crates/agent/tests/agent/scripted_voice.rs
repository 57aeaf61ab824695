//! A voice model that a test plays step by step, in the form of Gemini Live.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// A server that waits for connections of the bridge.
pub struct ScriptedVoice {
    pub url: String,
    connections: mpsc::UnboundedReceiver<ModelSide>,
}

/// The model's side of one connection.
pub struct ModelSide {
    received: mpsc::UnboundedReceiver<Value>,
    send: mpsc::UnboundedSender<Option<Value>>,
    pub setup: Value,
}

impl ScriptedVoice {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let (sender, connections) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, receiver) = mpsc::unbounded_channel();
                let (send, mut to_send) = mpsc::unbounded_channel::<Option<Value>>();
                let _ = sender.send(ModelSide { received: receiver, send, setup: Value::Null });
                tokio::spawn(async move {
                    let (mut sink, mut frames) = accept_async(stream).await.unwrap().split();
                    loop {
                        tokio::select! {
                            frame = frames.next() => match frame {
                                Some(Ok(Message::Text(text))) => {
                                    let _ = received.send(serde_json::from_str(&text).unwrap());
                                }
                                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                                _ => return,
                            },
                            message = to_send.recv() => match message {
                                Some(Some(message)) if message == json!({ "stopsReading": true }) => {
                                    std::future::pending::<()>().await;
                                }
                                Some(Some(message)) => {
                                    // As the service does, in binary frames.
                                    let frame = Message::Binary(message.to_string().into_bytes().into());
                                    if sink.send(frame).await.is_err() {
                                        return;
                                    }
                                }
                                // The connection is cut.
                                Some(None) | None => return,
                            },
                        }
                    }
                });
            }
        });
        Self { url, connections }
    }

    /// The next connection, set up.
    pub async fn accept(&mut self) -> ModelSide {
        let mut model = self.connections.recv().await.unwrap();
        model.setup = model.next().await["setup"].clone();
        model.send(json!({ "setupComplete": {} }));
        model
    }

    /// The next connection in the form of another provider: its first message is the setup, which `ready` answers.
    pub async fn accept_with(&mut self, ready: Value) -> ModelSide {
        let mut model = self.connections.recv().await.unwrap();
        model.setup = model.next().await;
        model.send(ready);
        model
    }

    /// The next connection, refused as the service refuses an unknown handle.
    pub async fn refuse(&mut self) -> Value {
        let mut model = self.connections.recv().await.unwrap();
        let setup = model.next().await["setup"].clone();
        model.cut();
        setup
    }
}

impl ModelSide {
    pub fn send(&self, message: Value) {
        self.send.send(Some(message)).unwrap();
    }

    pub fn cut(&self) {
        self.send.send(None).unwrap();
    }

    /// The next message of the bridge; audio is passed over.
    pub async fn next(&mut self) -> Value {
        loop {
            let message = self.received.recv().await.expect("the bridge has closed the connection");
            if message.pointer("/realtimeInput/audio").is_none() {
                return message;
            }
        }
    }

    /// The next message, if one has come.
    pub fn try_next(&mut self) -> Option<Value> {
        self.received.try_recv().ok()
    }

    /// The user says this.
    pub fn hears(&self, text: &str) {
        self.send(json!({ "serverContent": { "inputTranscription": { "text": text } } }));
    }

    /// From here on nothing is read from the connection.
    pub fn stops_reading(&self) {
        self.send(json!({ "stopsReading": true }));
    }

    /// The model says this: 100 ms of audio, and the end of its turn.
    pub fn says(&self, text: &str) {
        self.begins_to_say(text);
        self.send(json!({ "serverContent": { "turnComplete": true } }));
    }

    pub fn begins_to_say(&self, text: &str) {
        let data = "AAEAAQ".repeat(800);
        let part = json!({ "inlineData": { "mimeType": "audio/pcm;rate=24000", "data": data } });
        self.send(json!({ "serverContent": { "modelTurn": { "parts": [part] } } }));
        self.send(json!({ "serverContent": { "outputTranscription": { "text": text } } }));
    }

    pub fn calls(&self, calls: &[(&str, &str, Value)]) {
        let calls: Vec<Value> =
            calls.iter().map(|(id, name, args)| json!({ "id": id, "name": name, "args": args })).collect();
        self.send(json!({ "toolCall": { "functionCalls": calls } }));
    }

    /// The next answer to a call: its id and its content.
    pub async fn result(&mut self) -> (String, Value) {
        let message = self.next().await;
        let response = message.pointer("/toolResponse/functionResponses/0");
        let response = response.unwrap_or_else(|| panic!("no result: {message}"));
        (response["id"].as_str().unwrap().to_owned(), response["response"].clone())
    }

    /// The next text of the server.
    pub async fn note(&mut self) -> String {
        let message = self.next().await;
        let text = message.pointer("/clientContent/turns/0/parts/0/text");
        text.unwrap_or_else(|| panic!("no text: {message}")).as_str().unwrap().to_owned()
    }
}
