//! Redirects: every hop is checked again, methods change as in browsers, API keys are not sent to another origin.

use super::test_server::{Reply, Server, closed_port, hello, redirect};
use super::{allow, code, fetcher, get};
use serde_json::json;

#[tokio::test]
async fn a_redirect_within_the_list_is_followed() {
    let server = Server::start("127.0.0.1", |request| {
        Reply::Close(if request.starts_with("GET /old ") {
            redirect("301 Moved", "/new#part")
        } else {
            hello()
        })
    })
    .await;
    let base = format!("127.0.0.1:{}", server.port());
    let response = get(&fetcher(), &allow(&[&base]), &format!("http://{base}/old")).await.unwrap();
    assert_eq!(response["url"], json!(format!("http://{base}/new")));
    assert_eq!(response["body"], json!("hello"));
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_url_is_refused() {
    let inside = Server::fixed("127.0.0.1", hello()).await;
    let port = inside.port();
    for location in [
        format!("http://127.0.0.1:{port}/latest/meta-data"),
        format!("http://localhost:{port}/"),
        format!("//2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://private.test:{port}/"),
        "https://elsewhere.test/?token=secret".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://user:secret@public.test/".to_owned(),
        "http://[".to_owned(),
        "http://public.test:1/".to_owned(),
    ] {
        let server = Server::fixed("127.0.0.2", redirect("302 Found", &location)).await;
        let base = format!("http://public.test:{}", server.port());
        // `private.test` is listed, but resolves to 127.0.0.1.
        let list = allow(&[&base, &format!("http://private.test:{port}")]);
        let error = get(&fetcher(), &list, &base).await.unwrap_err();
        assert_eq!(error.code, "NOT_ALLOWED", "{location}");
        assert!(!error.message.contains("secret") && !error.message.contains("127."), "{error}");
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn the_number_of_redirects_is_limited() {
    let server = Server::fixed("127.0.0.1", redirect("307 Temporary Redirect", "/again")).await;
    let base = format!("127.0.0.1:{}", server.port());
    assert_eq!(code(get(&fetcher(), &allow(&[&base]), &format!("http://{base}/")).await), "NOT_ALLOWED");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_redirect_without_location_and_a_304_are_final_responses() {
    for status in ["302 Found", "304 Not Modified"] {
        let server =
            Server::fixed("127.0.0.1", format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")).await;
        let base = format!("127.0.0.1:{}", server.port());
        let response = get(&fetcher(), &allow(&[&base]), &format!("http://{base}/")).await.unwrap();
        assert_eq!((&response["ok"], response["status"].as_u64()), (&json!(false), status[..3].parse().ok()));
    }
}

#[tokio::test]
async fn methods_and_bodies_change_as_in_browsers() {
    for (status, method, then, body) in [
        ("301 Moved", "POST", "GET", ""),
        ("302 Found", "POST", "GET", ""),
        ("302 Found", "PUT", "PUT", "text"),
        ("303 See Other", "POST", "GET", ""),
        ("303 See Other", "DELETE", "GET", ""),
        ("307 Temporary", "POST", "POST", "text"),
        ("308 Permanent", "PATCH", "PATCH", "text"),
    ] {
        let server = Server::start("127.0.0.1", move |request| {
            Reply::Close(if request.contains(" /start ") { redirect(status, "/end") } else { hello() })
        })
        .await;
        let base = format!("127.0.0.1:{}", server.port());
        let arguments = [json!(format!("http://{base}/start")), json!({"method": method, "body": "text"})];
        fetcher().fetch(&allow(&[&base]), &arguments).await.unwrap();
        let last = server.requests().pop().unwrap();
        let (head, sent) = last.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("{then} /end ")), "{status} {method}: {head}");
        assert_eq!((sent, head.contains("content-type")), (body, !body.is_empty()), "{status} {method}");
    }
}

#[tokio::test]
async fn api_keys_are_not_sent_to_another_origin() {
    let init = json!({"headers": {
        "Authorization": "Bearer key1", "Cookie": "key2", "X-Api-Key": "key3", "Accept": "text/x", "User-Agent": "mine",
    }});
    let other = Server::fixed("127.0.0.1", hello()).await;
    let target = format!("http://127.0.0.1:{}/end", other.port());
    let first = Server::start("127.0.0.1", move |request| {
        Reply::Close(redirect("302 Found", if request.contains(" /start ") { "/same" } else { &target }))
    })
    .await;
    let list = allow(&[&first.address.to_string(), &other.address.to_string()]);
    fetcher().fetch(&list, &[json!(format!("http://{}/start", first.address)), init]).await.unwrap();
    let same = &first.requests()[1];
    assert!(same.contains("key1") && same.contains("key2") && same.contains("key3"), "{same}");
    let crossed = &other.requests()[0];
    assert!(!crossed.contains("key"), "{crossed}");
    assert!(crossed.contains("accept: text/x") && crossed.contains("user-agent: mine"), "{crossed}");
    assert!(!crossed.contains("referer"), "{crossed}");
}

#[tokio::test]
async fn after_a_write_an_unreachable_hop_is_a_timeout() {
    let (_held, closed) = closed_port();
    let first = Server::fixed("127.0.0.1", redirect("303 See Other", &format!("http://{closed}/"))).await;
    let list = allow(&[&first.address.to_string(), &closed.to_string()]);
    let url = json!(format!("http://{}/", first.address));
    assert_eq!(code(fetcher().fetch(&list, &[url.clone(), json!({"method": "POST"})]).await), "TIMEOUT");
    assert_eq!(code(fetcher().fetch(&list, &[url]).await), "UNREACHABLE");
}
