//! What several tests need: the installed model, and a server of a few lines.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::install;

/// The directory of models. `scripts/test` installs the model there.
pub(crate) fn models() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models");
    let models = std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| default.into(), PathBuf::from);
    if let Err(error) = install::status(&install::place(&models)) {
        panic!("{error}: run scripts/model, which installs it below target/ (or set TOOLWRIGHT_MODELS)");
    }
    models
}

/// A server on loopback that answers each request with given bytes, and remembers what it was asked.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answer` gets the number of the request and the request, and gives status line, headers and body.
    pub(crate) fn start(answer: impl Fn(usize, &str) -> (String, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let Some(request) = read(&mut stream) else { continue };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                let (head, body) = answer(number, &request);
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

fn read(stream: &mut TcpStream) -> Option<String> {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let line = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned)
            });
            if body.len() >= line.map_or(0, |length| length.trim().parse().unwrap()) {
                return Some(whole);
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => text.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}
