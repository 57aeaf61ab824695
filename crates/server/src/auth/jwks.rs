//! The issuer's public keys (JWKS), from a file or a URL: fetched on demand, and cached.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use tokio::sync::Mutex;

/// Older keys are fetched again.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Younger keys are not fetched again, whatever key ids tokens name.
const MIN_AGE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Where the keys come from.
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

/// The cached keys.
#[derive(Debug)]
pub(super) struct Jwks {
    source: Arc<Source>,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Debug, Default)]
struct Cache {
    keys: Arc<Vec<Jwk>>,
    read_at: Option<Instant>,
    client: Option<reqwest::Client>,
}

impl Jwks {
    pub fn new(source: Source) -> Self {
        Self { source: Arc::new(source), cache: Arc::default() }
    }

    /// The keys, read again when they are old or when `suffices` finds one missing. If reading fails, the cached keys stay in
    /// use. A separate task reads them, so that a client that disconnects does not interrupt it.
    pub async fn keys(&self, suffices: impl Fn(&[Jwk]) -> bool) -> Arc<Vec<Jwk>> {
        let mut cache = Arc::clone(&self.cache).lock_owned().await;
        let age = cache.read_at.map(|read_at| read_at.elapsed());
        let is_due = match age {
            None => true,
            Some(age) => age > MAX_AGE || (age > MIN_AGE && !suffices(&cache.keys)),
        };
        if !is_due {
            return Arc::clone(&cache.keys);
        }
        let (source, before) = (Arc::clone(&self.source), Arc::clone(&cache.keys));
        let reading = tokio::spawn(async move {
            match read(&source, &mut cache).await {
                Ok(keys) => cache.keys = Arc::new(keys),
                Err(error) => tracing::error!("could not read the issuer's keys: {error}"),
            }
            cache.read_at = Some(Instant::now());
            Arc::clone(&cache.keys)
        });
        reading.await.unwrap_or(before)
    }
}

async fn read(source: &Source, cache: &mut Cache) -> Result<Vec<Jwk>, String> {
    let text = match source {
        Source::File(path) => std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?,
        Source::Url(url) => {
            let client = match &cache.client {
                Some(client) => client.clone(),
                None => cache.client.insert(crate::http_client::build(TIMEOUT)?).clone(),
            };
            fetch(&client, url).await?
        }
    };
    parse(&text)
}

/// Keys of unknown types are skipped: an issuer may have some for other purposes.
fn parse(text: &[u8]) -> Result<Vec<Jwk>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set: Set = serde_json::from_slice(text).map_err(|error| format!("not a JWK set: {error}"))?;
    Ok(set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect())
}

async fn fetch(client: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
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
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_client_that_disconnects_does_not_interrupt_the_fetch() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        let jwks = Jwks::new(Source::Url(url));
        let (mut stream, _) = tokio::select! {
            _ = jwks.keys(|_| true) => panic!("the issuer has not answered yet"),
            accepted = listener.accept() => accepted.unwrap(),
        };
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let set = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a"}]}"#;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", set.len());
        stream.write_all(format!("{head}{set}").as_bytes()).await.unwrap();
        // The first fetch fills the cache: the listener accepts no second connection.
        assert!(jwks.keys(|_| true).await[0].matches("EdDSA", Some("a")));
    }
}
