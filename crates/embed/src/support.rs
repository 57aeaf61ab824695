//! Test fixtures: the installed model, and a minimal HTTP server.

#![expect(clippy::disallowed_methods, reason = "tests find the installed model by an environment variable")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::install;

/// The directory of models, where `scripts/test` installs the model.
pub(crate) fn models() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models");
    let models = std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| default.into(), PathBuf::from);
    if let Err(error) = install::check_sizes(&install::model_dir(&models)) {
        panic!("{error}: run scripts/model, which installs it below target/, or set TOOLWRIGHT_MODELS");
    }
    models
}

/// A server on loopback with scripted responses, which records its requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `respond` gets the number of the request and its text; it returns the status line with headers, and the body.
    pub(crate) fn start(respond: impl Fn(usize, &str) -> (String, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let Some(request) = read_request(&mut stream) else { continue };
                let number = {
                    let mut recorded = recorded.lock().unwrap();
                    recorded.push(request.clone());
                    recorded.len() - 1
                };
                let (head, body) = respond(number, &request);
                let head =
                    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned)
            });
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}
