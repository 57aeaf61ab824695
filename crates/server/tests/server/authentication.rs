//! Keys, roles, origins and addresses.

use std::time::Duration;

use serde_json::json;
use toolwright_contract::Principal;
use toolwright_orchestrator::Orchestrator;
use toolwright_server::auth::keys::KeyFile;
use toolwright_server::auth::{Auth, JwksSource, JwtOptions};
use toolwright_server::{Error, Options, Server};

use super::client::Client;
use super::support::TestServer;

/// The key file is checked once a second: repeats a request until its status changes.
async fn wait_for_status(client: &Client, status: u16) {
    let repeat = async {
        while client.get("/v1/tools").await.status != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), repeat).await.unwrap();
}

#[tokio::test]
async fn authentication_is_required_once_a_key_exists() {
    let server = TestServer::start().await;
    server.client.get("/v1/tools").await.expect(200);
    let mira = server.client_with_key("mira", &["staff"]);
    wait_for_status(&server.client, 401).await;
    let refused = server.client.get("/v1/tools").await;
    refused.problem(401, "Bearer");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    mira.get("/v1/tools").await.expect(200);
    for wrong in ["Bearer twk_0_0", "Bearer", "Basic bWlyYTo=", "Bearer ey.ey.ey", "Bearer twk_"] {
        server.client.with("authorization", wrong).get("/v1/tools").await.problem(401, "");
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(server.client.get(path).await.status, 200);
    }
    let id = server.keys.list().unwrap()[0].id.clone();
    server.keys.revoke(&id).unwrap();
    wait_for_status(&mira, 401).await;
    mira.get("/v1/tools").await.problem(401, "revoked");
    server.client.get("/v1/tools").await.problem(401, "Bearer");
}

#[tokio::test]
async fn routes_require_their_roles() {
    let server = TestServer::start().await;
    let (mira, scraper, admin) = (
        server.client_with_key("mira", &["staff"]),
        server.client_with_key("scraper", &["metrics"]),
        server.client_with_key("root", &["admin"]),
    );
    for (path, role) in [("/v1/audit", "admin"), ("/v1/metrics", "metrics"), ("/metrics", "metrics")] {
        mira.get(path).await.problem(403, role);
        assert_eq!(admin.get(path).await.status, 200);
    }
    assert_eq!(scraper.get("/metrics").await.status, 200);
    scraper.get("/v1/audit").await.problem(403, "admin");
    assert_eq!(mira.call("staff_only", json!({ "args": {} })).await["ok"], true);
    assert_eq!(admin.call("staff_only", json!({ "args": {} })).await["error"]["type"], "AUTH");
}

#[tokio::test]
async fn a_session_is_visible_to_its_principal_only() {
    let server = TestServer::start().await;
    let (mira, eve, admin) = (
        server.client_with_key("mira", &[]),
        server.client_with_key("eve", &[]),
        server.client_with_key("root", &["admin"]),
    );
    let made = mira.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    let id = made["sessionId"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}");
    for other in [eve, admin] {
        other.get(&path).await.problem(404, "not found");
        other.delete(&path).await.problem(404, "not found");
        other.post(&format!("{path}/turn"), json!({})).await.problem(404, "not found");
        other.get(&format!("{path}/events")).await.problem(404, "not found");
        other.post("/v1/tools/echo/call", json!({ "sessionId": id })).await.problem(404, "not found");
    }
    assert_eq!(mira.get(&path).await.expect(200)["standing"], "active");
}

#[tokio::test]
async fn requests_of_foreign_origins_are_refused() {
    let server =
        TestServer::with(|options| options.cors_origins = vec!["https://console.example".to_owned()], None)
            .await;
    let port = server.client.address.port();
    let body = json!({ "args": { "message": "x" } });
    for origin in
        ["http://evil.example".to_owned(), "null".to_owned(), format!("http://localhost:{}", port ^ 1)]
    {
        let page = server.client.with("origin", origin);
        page.post("/v1/tools/echo/call", body.clone()).await.problem(403, "cors_origins");
        let preflight = page
            .with("access-control-request-method", "POST")
            .request("OPTIONS", "/v1/tools/echo/call", "")
            .await;
        preflight.problem(403, "cors_origins");
        assert_eq!(preflight.header("access-control-allow-origin"), None);
    }
    server
        .client
        .with("host", format!("evil.example:{port}"))
        .get("/v1/tools")
        .await
        .problem(403, "loopback");
    server.client.with("sec-fetch-site", "cross-site").get("/v1/tools").await.problem(403, "cors_origins");
    let own = server.client.with("origin", format!("http://{}", server.client.address));
    assert_eq!(own.call("echo", body.clone()).await["ok"], true);
    let console = server.client.with("origin", "https://console.example");
    let answer = console.post("/v1/tools/echo/call", body).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://console.example"))
    );
    let preflight = console
        .with("access-control-request-method", "POST")
        .request("OPTIONS", "/v1/tools/echo/call", "")
        .await;
    assert_eq!(
        (preflight.status, preflight.header("access-control-allow-methods")),
        (204, Some("GET, POST, DELETE"))
    );
    assert_eq!(server.runs(), 2);
}

#[tokio::test]
async fn a_public_address_requires_authentication() {
    let dir = tempfile::tempdir().unwrap();
    let file = || KeyFile::new(dir.path().join("keys.json"));
    let options = || Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::default() };
    let orchestrator = TestServer::start().await.orchestrator.clone();
    let bind = async |orchestrator: &Orchestrator, jwt| {
        Server::bind(orchestrator.clone(), Auth::new(file(), jwt), options()).await
    };
    assert!(matches!(bind(&orchestrator, None).await, Err(Error::Unprotected(_))));
    let jwt = JwtOptions {
        jwks: JwksSource::File(dir.path().join("jwks.json")),
        issuer: "i".to_owned(),
        audience: "a".to_owned(),
        roles_claim: "roles".to_owned(),
        org_claim: "org".to_owned(),
    };
    assert!(bind(&orchestrator, Some(jwt)).await.is_ok());
    file().create(Principal { id: "mira".to_owned(), ..Principal::default() }, None).unwrap();
    assert!(bind(&orchestrator, None).await.is_ok());
}

#[tokio::test]
async fn a_tool_is_visible_only_to_those_who_may_use_it() {
    let server = TestServer::start().await;
    let all = |tools: serde_json::Value| tools["tools"].to_string().contains("staff_only");
    for (roles, sees) in [(&["admin"][..], false), (&["staff"], true), (&[], false)] {
        let client = server.client_with_key(&format!("with{}", roles.concat()), roles);
        assert_eq!(all(client.get("/v1/tools").await.expect(200)), sees, "{roles:?}");
        assert_eq!(client.get("/v1/tools/staff_only").await.status, if sees { 200 } else { 404 });
        assert!(!client.get("/v1/tools/staff_onl").await.text().contains("`staff_only`") || sees);
        let is_admin = roles.contains(&"admin");
        assert_eq!(
            client.get("/v1/tools/staff_only?all=true").await.status,
            if is_admin { 200 } else { 403 }
        );
    }
}
