//! Timeouts, size limits and broken connections.

use super::test_server::{Reply, Server, closed_port, hello, reply};
use super::{allow, code, fetcher, fetcher_with, get, known_names, options};
use crate::http::Options;
use serde_json::json;
use std::time::{Duration, Instant};

async fn outcome_of(respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (&'static str, String) {
    let server = Server::start("127.0.0.1", respond).await;
    let base = server.address.to_string();
    let options = Options { total_timeout: Duration::from_millis(300), ..options() };
    match get(&fetcher_with(known_names, options), &allow(&[&base]), &format!("http://{base}/")).await {
        Ok(response) => ("ok", response["body"].as_str().unwrap().to_owned()),
        Err(error) => (error.code, error.message),
    }
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    assert_eq!(
        outcome_of(|_| Reply::Silence).await,
        ("TIMEOUT", "no complete response within 300 ms".to_owned())
    );
}

#[tokio::test]
async fn a_slow_drip_times_out_as_a_whole() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n";
    assert_eq!(outcome_of(move |_| Reply::Drip(head.into())).await.0, "TIMEOUT");
    assert_eq!(outcome_of(|_| Reply::Drip(b"HTTP/1.1 200 OK\r\nx-".to_vec())).await.0, "TIMEOUT");
}

#[tokio::test]
async fn a_handler_can_shorten_the_time_but_not_lengthen_it() {
    let server = Server::start("127.0.0.1", |_| Reply::Silence).await;
    let base = server.address.to_string();
    let options = Options { total_timeout: Duration::from_millis(400), ..options() };
    let fetcher = fetcher_with(known_names, options);
    for (timeout_ms, message) in
        [(50.0, "no complete response within 50 ms"), (1e300, "no complete response within 400 ms")]
    {
        let started = Instant::now();
        let arguments = [json!(format!("http://{base}/")), json!({"timeoutMs": timeout_ms})];
        let error = fetcher.fetch(&allow(&[&base]), &arguments).await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), ("TIMEOUT", message));
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_lookup_that_hangs_is_unreachable_not_a_timeout() {
    let lookup =
        std::sync::Arc::new(|_| Box::pin(std::future::pending()) as crate::http::dns_guard::LookupFuture);
    let guard =
        crate::http::dns_guard::DnsGuard { lookup, is_public: super::is_test_public, configured_host: None };
    let options = Options { connect_timeout: Duration::from_millis(50), ..options() };
    let fetcher = crate::http::Fetcher::with_guard(options, guard, super::no_tls).unwrap();
    let error = get(&fetcher, &allow(&["http://slow.test"]), "http://slow.test/").await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), ("UNREACHABLE", "could not connect to slow.test"));
}

#[tokio::test]
async fn a_response_at_the_limit_is_accepted_and_one_byte_more_is_refused() {
    let chunked = |size: usize| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let half = "x".repeat(size / 2);
        let rest = "x".repeat(size - size / 2);
        format!("{head}{:x}\r\n{half}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", half.len(), rest.len()).into_bytes()
    };
    let until_close = |size: usize| format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(size)).into_bytes();
    let sized = |size: usize| reply("200 OK", "", "x".repeat(size));
    for (fits, exceeds) in
        [(sized(1000), sized(1001)), (chunked(1000), chunked(1001)), (until_close(1000), until_close(1001))]
    {
        assert_eq!(outcome_of(move |_| Reply::Close(fits.clone())).await, ("ok", "x".repeat(1000)));
        let too_large = ("NOT_ALLOWED", "the response is larger than the limit of 1000 bytes".to_owned());
        assert_eq!(outcome_of(move |_| Reply::Close(exceeds.clone())).await, too_large);
    }
}

#[tokio::test]
async fn an_endless_response_is_cut_off_by_the_size_limit() {
    let options = Options { max_response_bytes: 5, ..options() };
    let server = Server::start("127.0.0.1", |_| Reply::Drip(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())).await;
    let base = server.address.to_string();
    let fetcher = fetcher_with(known_names, options);
    assert_eq!(code(get(&fetcher, &allow(&[&base]), &format!("http://{base}/")).await), "NOT_ALLOWED");
}

#[tokio::test]
async fn a_content_length_above_the_limit_is_refused() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n";
    assert_ne!(outcome_of(|_| Reply::Close(announced.to_vec())).await.0, "ok");
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n";
    assert_eq!(outcome_of(|_| Reply::Close(announced.to_vec())).await.0, "NOT_ALLOWED");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_not_sent() {
    let server = Server::fixed("127.0.0.1", hello()).await;
    let base = server.address.to_string();
    let url = format!("http://{base}/");
    for (url, init) in [
        (url.clone(), json!({"method": "POST", "body": "x".repeat(1001)})),
        (url.clone(), json!({"method": "POST", "body": {"text": "x".repeat(1001)}})),
        (url.clone(), json!({"headers": {"x-long": "x".repeat(1001)}})),
        (format!("{url}{}", "x".repeat(1001)), json!({})),
    ] {
        let error = fetcher().fetch(&allow(&[&base]), &[json!(url), init]).await.unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("INVALID_ARGUMENT", "the request is larger than the limit of 1000 bytes")
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_a_broken_response_is_not() {
    let (_held, closed) = closed_port();
    let closed = closed.to_string();
    assert_eq!(code(get(&fetcher(), &allow(&[&closed]), &format!("http://{closed}/")).await), "UNREACHABLE");
    for broken in ["", "HTTP/1.1 200", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"]
    {
        assert_eq!(outcome_of(move |_| Reply::Close(broken.into())).await.0, "TIMEOUT", "{broken}");
    }
}
