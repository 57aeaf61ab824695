//! The handler's arguments: what is sent for them, and which are refused.

use super::test_server::{Server, hello};
use super::{allow, fetcher};
use crate::http::Methods;
use serde_json::{Value, json};

/// The request that the server receives.
async fn sent_request(init: Value) -> String {
    let server = Server::fixed("127.0.0.1", hello()).await;
    let base = server.address.to_string();
    let result = fetcher().fetch(&allow(&[&base]), &[json!(format!("http://{base}/")), init.clone()]).await;
    assert!(result.is_ok(), "{init}: {result:?}");
    server.requests().pop().unwrap()
}

async fn refusal_message(arguments: &[Value]) -> String {
    let error = fetcher().fetch(&allow(&["127.0.0.1:1"]), arguments).await.unwrap_err();
    assert_eq!(error.code, "INVALID_ARGUMENT", "{arguments:?}: {error}");
    error.message
}

#[tokio::test]
async fn methods_are_sent_in_upper_case_if_they_are_standard() {
    for (given, method) in [
        ("get", "GET"),
        ("Post", "POST"),
        ("PUT", "PUT"),
        ("patch", "PATCH"),
        ("DELETE", "DELETE"),
        ("PROPFIND", "PROPFIND"),
    ] {
        assert!(
            sent_request(json!({"method": given})).await.starts_with(&format!("{method} / HTTP/1.1\r\n"))
        );
    }
    assert!(sent_request(json!({"method": null, "signal": {"aborted": false}})).await.starts_with("GET "));
}

#[tokio::test]
async fn a_body_is_text_or_json() {
    let text = sent_request(json!({"method": "POST", "body": "grüße"})).await;
    assert!(
        text.contains("content-type: text/plain;charset=UTF-8\r\n") && text.ends_with("\r\n\r\ngrüße"),
        "{text}"
    );
    let object = sent_request(json!({"method": "POST", "body": {"b": 1, "a": [null]}})).await;
    assert!(
        object.contains("content-type: application/json\r\n")
            && object.ends_with("\r\n\r\n{\"b\":1,\"a\":[null]}"),
        "{object}"
    );
    let typed =
        sent_request(json!({"method": "PUT", "body": "<a/>", "headers": {"Content-Type": "text/xml"}})).await;
    assert_eq!(typed.matches("content-type").count(), 1);
    assert!(typed.contains("content-type: text/xml\r\n"), "{typed}");
}

#[tokio::test]
async fn headers_are_sent_without_identifying_additions() {
    let request =
        sent_request(json!({"headers": {"X-Number": 7, "x-flag": true, "Authorization": " Bearer k "}}))
            .await;
    for line in
        ["x-number: 7\r\n", "x-flag: true\r\n", "authorization: Bearer k\r\n", "user-agent: toolwright/"]
    {
        assert!(request.contains(line), "{line} in {request}");
    }
    assert!(!request.contains("accept-encoding") && !request.contains("cookie"), "{request}");
}

#[tokio::test]
async fn headers_of_the_connection_are_refused() {
    for name in [
        "Host",
        "Content-Length",
        "Connection",
        "Keep-Alive",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "proxy-connection",
        "PROXY-X",
        "Accept-Encoding",
        "X-HTTP-Method-Override",
    ] {
        let message =
            refusal_message(&[json!("http://127.0.0.1:1/"), json!({"headers": {name: "secret"}})]).await;
        assert_eq!(message, format!("the header \"{}\" must not be set", name.to_lowercase()));
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let url = json!("http://127.0.0.1:1/");
    for arguments in [
        vec![],
        vec![json!(7)],
        vec![json!("")],
        vec![json!("/relative")],
        vec![json!("http://")],
        vec![json!("http://[::1%25eth0]/")],
        vec![json!("http://127.0.0.1:99999/")],
        vec![url.clone(), json!("init")],
        vec![url.clone(), json!({"redirect": "manual"})],
        vec![url.clone(), json!({"method": 1})],
        vec![url.clone(), json!({"method": "BAD METHOD"})],
        vec![url.clone(), json!({"method": "GET\r\nX: y"})],
        vec![url.clone(), json!({"body": "in a GET"})],
        vec![url.clone(), json!({"method": "HEAD", "body": {}})],
        vec![url.clone(), json!({"method": "POST", "body": 7})],
        vec![url.clone(), json!({"headers": ["a"]})],
        vec![url.clone(), json!({"headers": {"bad name": "x"}})],
        vec![url.clone(), json!({"headers": {"": "x"}})],
        vec![url.clone(), json!({"headers": {"x": null}})],
        vec![url.clone(), json!({"headers": {"x": "secret\r\nhost: evil"}})],
        vec![url.clone(), json!({"headers": {"x": "secret\u{0}"}})],
        vec![url.clone(), json!({"timeoutMs": 0})],
        vec![url.clone(), json!({"timeoutMs": -1})],
        vec![url.clone(), json!({"timeoutMs": 1.5})],
        vec![url.clone(), json!({"timeoutMs": "1000"})],
    ] {
        assert!(!refusal_message(&arguments).await.contains("secret"));
    }
}

#[tokio::test]
async fn a_read_only_tool_cannot_post() {
    let list = allow(&["127.0.0.1:1"]).with_methods(Methods::ReadOnly);
    let error =
        fetcher().fetch(&list, &[json!("http://127.0.0.1:1/"), json!({"method": "post"})]).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        ("NOT_ALLOWED", "a read-only tool may use GET and HEAD, not POST")
    );
}
