//! The issuer's public keys (JWKS), from a file or a URL: fetched in the background, and cached.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Older keys are fetched again, while they stay in use.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Younger keys are not fetched again, whatever key ids tokens name.
const MIN_AGE: Duration = Duration::from_secs(30);
/// While no fetch has succeeded, the next one starts this long after the last.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Timeout of a fetch, and of the requests that wait for the first one.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The source of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Url(String),
    File(PathBuf),
}

impl Source {
    /// A URL, or the path of a file.
    pub fn parse(text: &str) -> Self {
        let is_url = text.starts_with("https://") || text.starts_with("http://");
        if is_url { Self::Url(text.to_owned()) } else { Self::File(text.into()) }
    }
}

/// One JSON Web Key.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// Whether it can have signed a token with this algorithm and key id.
    pub fn matches(&self, algorithm: &str, kid: Option<&str>) -> bool {
        let is_of_type = match algorithm {
            "RS256" => self.kty == "RSA",
            "ES256" => self.kty == "EC" && self.crv.as_deref() == Some("P-256"),
            "EdDSA" => self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519"),
            _ => false,
        };
        is_of_type
            && self.alg.as_deref().is_none_or(|own| own == algorithm)
            && self.r#use.as_deref().is_none_or(|own| own == "sig")
            && kid.is_none_or(|kid| self.kid.as_deref() == Some(kid))
    }

    /// Whether it has signed this message.
    pub fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        let part = |part: &Option<String>| {
            URL_SAFE_NO_PAD.decode(part.as_deref().unwrap_or_default()).unwrap_or_default()
        };
        let verify = |algorithm: &'static dyn VerificationAlgorithm, key: Vec<u8>| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match algorithm {
            "RS256" => {
                let key = RsaPublicKeyComponents { n: part(&self.n), e: part(&self.e) };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            "ES256" => {
                let point = [&[4], &part(&self.x)[..], &part(&self.y)[..]].concat();
                verify(&signature::ECDSA_P256_SHA256_FIXED, point)
            }
            "EdDSA" => verify(&signature::ED25519, part(&self.x)),
            _ => false,
        }
    }
}

/// The cached keys. Requests wait only for a fetch that may be the first to succeed.
#[derive(Debug)]
pub(super) struct Jwks {
    source: Arc<Source>,
    /// [`MIN_AGE`] and [`RETRY_AFTER`], or shorter times in tests.
    min_age: Duration,
    retry_after: Duration,
    cache: Arc<watch::Sender<Cache>>,
    last_fetch: Mutex<Option<KeyFetch>>,
}

#[derive(Debug, Default)]
struct Cache {
    /// `None` until the first fetch has succeeded.
    keys: Option<Arc<Vec<Jwk>>>,
    /// How many fetches have ended.
    ended: u64,
}

/// A fetch in a task of its own: a client that disconnects does not interrupt it.
#[derive(Debug)]
struct KeyFetch {
    /// Its place among all, from 1.
    number: u64,
    started: Instant,
    task: JoinHandle<()>,
}

impl Jwks {
    pub fn new(source: Source) -> Self {
        let (cache, last_fetch) = (Arc::default(), Mutex::default());
        Self { source: Arc::new(source), min_age: MIN_AGE, retry_after: RETRY_AFTER, cache, last_fetch }
    }

    /// Starts the first fetch, before there is a request.
    pub fn fetch_ahead(&self) {
        self.fetch_if_due(self.min_age);
    }

    /// The known keys, or `None` while no fetch has succeeded. When they are old, or when `suffices` finds one missing,
    /// they are fetched again in the background; if that fails, they stay in use.
    pub async fn keys(&self, suffices: impl Fn(&[Jwk]) -> bool) -> Option<Arc<Vec<Jwk>>> {
        let mut changes = self.cache.subscribe();
        if let Some(known) = changes.borrow().keys.clone() {
            self.fetch_if_due(if suffices(&known) { MAX_AGE } else { self.min_age });
            return Some(known);
        }
        let number = self.fetch_if_due(self.retry_after);
        let ended = changes.wait_for(|cache| cache.keys.is_some() || cache.ended >= number);
        timeout(TIMEOUT, ended).await.ok()?.ok()?.keys.clone()
    }

    /// Starts a fetch, unless one is running or the last one is younger than this. Returns the number of the last one.
    fn fetch_if_due(&self, max_age: Duration) -> u64 {
        let mut last = self.last_fetch.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match &*last {
            Some(fetch) if !fetch.task.is_finished() || fetch.started.elapsed() <= max_age => {
                return fetch.number;
            }
            Some(fetch) => fetch.number + 1,
            None => 1,
        };
        let task = tokio::spawn(fetch(Arc::clone(&self.source), Arc::clone(&self.cache)));
        *last = Some(KeyFetch { number, started: Instant::now(), task });
        number
    }
}

async fn fetch(source: Arc<Source>, cache: Arc<watch::Sender<Cache>>) {
    let fetched = read(&source).await.map(Arc::new);
    cache.send_modify(|cache| {
        cache.ended += 1;
        match fetched {
            Ok(keys) => cache.keys = Some(keys),
            Err(error) => tracing::error!("could not read the issuer's keys: {error}"),
        }
    });
}

async fn read(source: &Source) -> Result<Vec<Jwk>, String> {
    let text = match source {
        Source::File(path) => std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?,
        Source::Url(url) => download(&crate::http_client::build(TIMEOUT)?, url).await?,
    };
    parse(&text)
}

/// Keys of unknown types are skipped: an issuer may have some for other purposes.
fn parse(text: &[u8]) -> Result<Vec<Jwk>, String> {
    #[derive(Deserialize)]
    struct KeySet {
        keys: Vec<serde_json::Value>,
    }
    let set: KeySet = serde_json::from_slice(text).map_err(|error| format!("not a JWK set: {error}"))?;
    Ok(set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect())
}

async fn download(client: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let mut response =
        client.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        text.extend_from_slice(&chunk);
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(format!("the document has more than {MAX_DOCUMENT_BYTES} bytes"));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// An issuer that answers only when the test lets it.
    async fn issuer() -> (TcpListener, Jwks) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        (listener, Jwks::new(Source::Url(url)))
    }

    async fn request(listener: &TcpListener) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
        stream
    }

    async fn answer(mut stream: TcpStream, kid: &str) {
        let set = format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "{kid}"}}]}}"#);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", set.len());
        stream.write_all(format!("{head}{set}").as_bytes()).await.unwrap();
    }

    fn has(keys: &[Jwk], kid: &str) -> bool {
        keys.iter().any(|key| key.matches("EdDSA", Some(kid)))
    }

    async fn known(jwks: &Jwks, suffices: impl Fn(&[Jwk]) -> bool) -> Arc<Vec<Jwk>> {
        jwks.keys(suffices).await.unwrap()
    }

    #[tokio::test]
    async fn a_client_that_disconnects_does_not_interrupt_the_fetch() {
        let (listener, jwks) = issuer().await;
        let stream = tokio::select! {
            _ = jwks.keys(|_| true) => panic!("the issuer has not answered yet"),
            stream = request(&listener) => stream,
        };
        answer(stream, "a").await;
        // The first fetch fills the cache: the listener accepts no second connection.
        assert!(has(&known(&jwks, |_| true).await, "a"));
    }

    #[tokio::test]
    async fn known_keys_serve_while_an_issuer_does_not_answer() {
        let (listener, mut jwks) = issuer().await;
        jwks.min_age = Duration::ZERO;
        jwks.fetch_ahead();
        let (first, ()) = tokio::join!(known(&jwks, |_| true), async {
            answer(request(&listener).await, "a").await;
        });
        assert!(has(&first, "a"));
        while !jwks.last_fetch.lock().unwrap().as_ref().unwrap().task.is_finished() {
            tokio::task::yield_now().await;
        }
        let unknown = |keys: &[Jwk]| has(keys, "b");
        for _ in 0..10 {
            assert!(has(&known(&jwks, unknown).await, "a"), "an unknown key id is answered at once");
        }
        let hanging = request(&listener).await;
        for _ in 0..10 {
            assert!(has(&known(&jwks, |keys| has(keys, "a")).await, "a"), "valid tokens do not wait");
            assert!(!has(&known(&jwks, unknown).await, "b"));
        }
        answer(hanging, "b").await;
        let mut changes = jwks.cache.subscribe();
        changes.wait_for(|cache| cache.keys.as_ref().is_some_and(|keys| has(keys, "b"))).await.unwrap();
        assert!(has(&known(&jwks, unknown).await, "b"));
        let another = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(another.is_err(), "one fetch for all unknown key ids");
    }

    #[tokio::test]
    async fn a_first_fetch_that_fails_is_repeated_soon_and_not_at_once() {
        let (listener, mut jwks) = issuer().await;
        let (keys, ()) = tokio::join!(jwks.keys(|_| true), async { drop(request(&listener).await) });
        assert!(keys.is_none());
        while !jwks.last_fetch.lock().unwrap().as_ref().unwrap().task.is_finished() {
            tokio::task::yield_now().await;
        }
        jwks.retry_after = Duration::from_secs(3600);
        assert!(jwks.keys(|_| true).await.is_none(), "it does not wait, since nothing is fetched");
        jwks.retry_after = Duration::ZERO;
        let (keys, ()) = tokio::join!(known(&jwks, |_| true), async {
            answer(request(&listener).await, "a").await;
        });
        assert!(has(&keys, "a"));
    }
}
