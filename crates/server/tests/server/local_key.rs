//! The key of one run of the server, for programs of the same user: it acts for the operator, and for any principal
//! that it names.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use toolwright_server::auth::LocalKey;
use toolwright_server::mcp::{HostOptions, serve_local};

use super::support::TestServer;

#[tokio::test]
async fn the_local_key_acts_for_the_operator_and_for_principals_that_it_names() {
    let key = LocalKey::random().unwrap();
    let server = TestServer::with_local_key(key.clone()).await;
    let mira = server.client_with_key("mira", &["staff"]);
    let session = mira.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201)["sessionId"].clone();
    let local = server.client.with("authorization", format!("Bearer {}", key.reveal()));
    // In any session, as the session's own principal.
    let read = local.get(&format!("/v1/sessions/{}", session.as_str().unwrap())).await.expect(200);
    assert_eq!(read["principal"], json!({ "id": "mira", "org": "studio", "roles": ["staff"] }));
    let call = json!({ "sessionId": session, "args": {} });
    assert_eq!(local.call("staff_only", call.clone()).await["ok"], true);
    let guest = local.with("toolwright-principal", r#"{"id": "guest", "org": null, "roles": []}"#);
    guest.get("/v1/audit").await.problem(403, "admin");
    assert_eq!(guest.call("staff_only", json!({ "args": {} })).await["error"]["type"], "AUTH");
    let refused = guest.request("POST", "/v1/tools/staff_only/call", &call.to_string()).await;
    refused.problem(404, "Session `");
    local.with("toolwright-principal", "[]").get("/v1/tools").await.problem(401, "toolwright-principal");
    local.get("/v1/audit").await.expect(200);
    let other = format!("Bearer {}", LocalKey::random().unwrap().reveal());
    server.client.with("authorization", other).get("/v1/tools").await.problem(401, "outdated");
    // The header means nothing with any other key.
    let named = mira.with("toolwright-principal", r#"{"id": "root", "roles": ["admin"]}"#);
    named.get("/v1/audit").await.problem(403, "admin");
}

#[tokio::test]
async fn a_local_mcp_host_needs_the_key() {
    let key = LocalKey::random().unwrap();
    let server = TestServer::with_local_key(key.clone()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_local(listener, key.clone(), server.orchestrator.clone(), HostOptions::default()));
    for (first, expected) in [
        (json!({ "key": key.reveal(), "mode": "voice" }), r#"{"ok":true}"#),
        (json!({ "key": "twl_other", "mode": "text" }), r#"{"error":"the key is wrong"}"#),
        (json!([]), r#"{"error":"the key is wrong"}"#),
    ] {
        let (read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
        let mut lines = BufReader::new(read).lines();
        write.write_all(format!("{first}\n").as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), expected);
        if expected.contains("error") {
            assert_eq!(lines.next_line().await.unwrap(), None, "the connection is closed");
            continue;
        }
        let initialize = super::mcp_http::initialize().to_string();
        write.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
        assert!(lines.next_line().await.unwrap().unwrap().contains("serverInfo"));
    }
}
