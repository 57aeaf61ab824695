//! JWT authentication: the issuer's keys are fetched once, and unknown key ids do not cause further fetches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwright_server::auth::{JwksSource, JwtOptions};

use super::client::Client;
use super::support::TestServer;

struct Issuer {
    url: String,
    fetches: Arc<AtomicUsize>,
    key: Ed25519KeyPair,
}

impl Issuer {
    async fn start() -> Self {
        Self::start_with_outage(0).await
    }

    /// An issuer whose first answers are failures.
    async fn start_with_outage(failures: usize) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x }] }).to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let fetches = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&fetches);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let fetches = counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                if fetches < failures {
                    continue;
                }
                let length = keys.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{keys}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, fetches, key }
    }

    fn options(&self) -> JwtOptions {
        JwtOptions {
            jwks: JwksSource::parse(&self.url),
            issuer: "https://issuer.example".to_owned(),
            audience: "toolwright".to_owned(),
            roles_claim: "roles".to_owned(),
            org_claim: "org".to_owned(),
        }
    }

    fn client(&self, client: &Client, kid: &str, subject: &str, roles: Value, lifetime: i64) -> Client {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let expires = i64::try_from(now).unwrap() + lifetime;
        let claims = json!({ "iss": "https://issuer.example", "aud": "toolwright", "sub": subject, "exp": expires,
            "roles": roles });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({ "alg": "EdDSA", "kid": kid })), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        client.with("authorization", format!("Bearer {signed}.{signature}"))
    }
}

#[tokio::test]
async fn tokens_of_the_issuer_authenticate() {
    let issuer = Issuer::start().await;
    let server = TestServer::with(|_| {}, Some(issuer.options())).await;
    server.client.get("/v1/tools").await.problem(401, "Bearer");
    let mira = issuer.client(&server.client, "one", "mira", json!(["staff"]), 300);
    assert_eq!(mira.call("staff_only", json!({ "args": {} })).await["ok"], true);
    mira.get("/v1/audit").await.problem(403, "admin");
    let session = mira.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    let path = format!("/v1/sessions/{}", session["sessionId"].as_str().unwrap());
    let admin = issuer.client(&server.client, "one", "root", json!("admin other"), 300);
    assert_eq!(admin.get("/v1/audit").await.status, 200);
    admin.get(&path).await.problem(404, "not found");
    let late = issuer.client(&server.client, "one", "mira", json!([]), -120);
    late.get(&path).await.problem(401, "expired");
    for number in 0..5 {
        let other = issuer.client(&server.client, &format!("made-up-{number}"), "mira", json!([]), 300);
        other.get(&path).await.problem(401, "no key of the issuer");
    }
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 1);
    mira.get(&path).await.expect(200);
}

#[tokio::test]
async fn the_keys_are_fetched_before_the_first_request() {
    let issuer = Issuer::start().await;
    let _server = TestServer::with(|_| {}, Some(issuer.options())).await;
    while issuer.fetches.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn valid_tokens_are_not_refused_while_the_issuer_cannot_be_reached() {
    let issuer = Issuer::start_with_outage(1).await;
    let server = TestServer::with(|_| {}, Some(issuer.options())).await;
    let mira = issuer.client(&server.client, "one", "mira", json!([]), 300);
    // It waits for the first fetch, which fails, and is told to come back; then the fetch is repeated.
    let response = mira.get("/v1/tools").await;
    assert_eq!(response.header("retry-after"), Some("1"));
    response.problem(503, "keys could not be fetched");
    let began = std::time::Instant::now();
    while mira.get("/v1/tools").await.status != 200 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "the fetch is not repeated");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 2);
}
