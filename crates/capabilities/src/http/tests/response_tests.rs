//! Responses as handlers see them.

use super::test_server::{Server, reply};
use super::{allow, fetcher};
use serde_json::{Value, json};

async fn fetch_response(method: &str, bytes: Vec<u8>) -> Value {
    let server = Server::fixed("127.0.0.1", bytes).await;
    let base = server.address.to_string();
    let arguments = [json!(format!("http://{base}/")), json!({"method": method})];
    fetcher().fetch(&allow(&[&base]), &arguments).await.unwrap()
}

#[tokio::test]
async fn a_body_is_text_or_base64_by_its_type() {
    for (headers, bytes, body, parsed) in [
        ("", &b"plain"[..], "plain", json!(null)),
        ("content-type: text/html\r\n", b"caf\xe9 \xff", "caf\u{fffd} \u{fffd}", json!(null)),
        ("content-type: application/json\r\n", b"{\"b\":[1]}", "{\"b\":[1]}", json!({"b": [1]})),
        ("content-type: Application/Problem+JSON; charset=utf-8\r\n", b"\xef\xbb\xbf7", "7", json!(7)),
        ("content-type: application/json\r\n", b"{broken", "{broken", json!(null)),
        ("content-type: application/json\r\n", b"", "", json!(null)),
        ("content-type: text/plain\r\n", b"{}", "{}", json!(null)),
        ("content-type: image/svg+xml\r\n", b"<svg/>", "<svg/>", json!(null)),
        ("content-type: application/x-ndjson\r\n", b"1\n2", "1\n2", json!(null)),
        ("content-type: image/png\r\n", b"\x89PNG", "iVBORw==", json!(null)),
        ("content-type: application/octet-stream\r\n", b"\x00\x01", "AAE=", json!(null)),
        ("content-type: application/pdf\r\n", b"%PDF", "JVBERg==", json!(null)),
        ("content-type: application/json\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b", "H4s=", json!(null)),
        ("content-type: application/json\r\ncontent-encoding: identity\r\n", b"1", "1", json!(1)),
    ] {
        let response = fetch_response("GET", reply("200 OK", headers, bytes)).await;
        assert_eq!((&response["body"], &response["json"]), (&json!(body), &parsed), "{headers}");
    }
}

#[tokio::test]
async fn header_names_are_lower_case_and_values_are_joined() {
    let headers = "X-Many: one\r\nx-many: two\r\nSet-Cookie: a=b\r\nX-Latin: \u{e9}\r\n";
    let response = fetch_response("GET", reply("200 OK", headers, "")).await;
    assert_eq!(
        response["headers"],
        json!({"x-many": "one, two", "set-cookie": "a=b", "x-latin": "\u{e9}", "content-length": "0"})
    );
}

#[tokio::test]
async fn a_status_of_400_or_above_is_a_response_not_an_error() {
    for (status, number) in
        [("404 Not Found", 404), ("429 Too Many", 429), ("503 Unavailable", 503), ("599 ?", 599)]
    {
        let response =
            fetch_response("GET", reply(status, "content-type: application/json\r\n", "{\"error\":1}")).await;
        assert_eq!(
            (&response["status"], &response["ok"], &response["json"]),
            (&json!(number), &json!(false), &json!({"error": 1}))
        );
    }
}

#[tokio::test]
async fn responses_without_a_body_are_complete() {
    let head = fetch_response("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n".to_vec()).await;
    assert_eq!((&head["body"], &head["headers"]["content-length"]), (&json!(""), &json!("999999")));
    let empty = fetch_response("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()).await;
    assert_eq!((&empty["status"], &empty["ok"], &empty["body"]), (&json!(204), &json!(true), &json!("")));
}

#[tokio::test]
async fn cookies_are_not_stored() {
    let server = Server::fixed("127.0.0.1", reply("200 OK", "set-cookie: id=1\r\n", "")).await;
    let base = server.address.to_string();
    let (fetcher, list, url) = (fetcher(), allow(&[&base]), json!(format!("http://{base}/")));
    for _ in 0..2 {
        fetcher.fetch(&list, std::slice::from_ref(&url)).await.unwrap();
    }
    assert!(server.requests().iter().all(|request| !request.contains("id=1")));
}
