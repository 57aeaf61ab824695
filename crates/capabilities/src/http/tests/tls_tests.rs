//! https with a certificate for `localhost`, signed by an authority that only these tests know (both end in 2126).

use super::test_server::{Reply, converse, hello};
use super::{allow, code, get, guard_with, known_names, no_tls, options};
use crate::http::{Fetcher, http_client};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn trust_test_authority() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(&include_bytes!("tls/authority.der")[..]))
        .map_err(|error| error.to_string())?;
    http_client::tls_with_roots(roots)
}

async fn start() -> u16 {
    let certificate = CertificateDer::from(&include_bytes!("tls/localhost.der")[..]);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(&include_bytes!("tls/localhost.key.der")[..]));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                converse(stream, &|_: &str| Reply::Close(hello()), &Mutex::default()).await;
            }
        }
    });
    port
}

fn fetcher(tls: fn() -> Result<ClientConfig, String>) -> Fetcher {
    Fetcher::with_guard(options(), guard_with(known_names), tls).unwrap()
}

#[tokio::test]
async fn a_trusted_certificate_of_the_right_name_is_needed() {
    let port = start().await;
    let (right, wrong) = (format!("https://localhost:{port}"), format!("https://other.localhost:{port}"));
    let list = allow(&[&right, &wrong]);
    let trusting = fetcher(trust_test_authority);
    assert_eq!(code(get(&trusting, &list, &right).await), "ok");
    for (fetcher, url) in [(trusting, &wrong), (fetcher(no_tls), &right)] {
        let error = get(&fetcher, &list, url).await.unwrap_err();
        assert_eq!(error.code, "UNREACHABLE", "{error}");
        assert!(error.message.starts_with("no trusted connection to "), "{error}");
    }
}

#[tokio::test]
async fn a_machine_without_certificates_still_speaks_plain_http() {
    let port = start().await;
    let fetcher = fetcher(|| Err("/etc/ssl is empty".to_owned()));
    let (secure, plain) = (format!("https://localhost:{port}"), format!("http://localhost:{port}"));
    let error = get(&fetcher, &allow(&[&secure]), &secure).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        ("UNREACHABLE", "https is not available on this server")
    );
    // The server speaks TLS, so the response is broken; but the request was sent.
    assert_eq!(code(get(&fetcher, &allow(&[&plain]), &plain).await), "TIMEOUT");
}

#[tokio::test]
async fn the_system_fetcher_is_made_without_reading_certificates() {
    let fetcher = Fetcher::new(crate::http::Options::default()).unwrap();
    assert_eq!(code(get(&fetcher, &allow(&[]), "https://127.0.0.1:1/").await), "NOT_ALLOWED");
}
