//! Who may ask: keys, roles, origins, addresses.

use std::time::Duration;

use serde_json::json;
use toolwright_orchestrator::Orchestrator;
use toolwright_server::auth::keys::KeyFile;
use toolwright_server::auth::{Auth, JwksSource, JwtOptions};
use toolwright_server::{Error, Options, Server};

use super::client::Client;
use super::support::Served;

/// The file is looked at once a second: asks until it is answered like this.
async fn becomes(client: &Client, status: u16) {
    let asking = async {
        while client.get("/v1/tools").await.status != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap();
}

#[tokio::test]
async fn once_there_is_a_key_it_is_asked_for() {
    let served = Served::start().await;
    served.client.get("/v1/tools").await.expect(200);
    let mira = served.client_of("mira", &["staff"]);
    becomes(&served.client, 401).await;
    let refused = served.client.get("/v1/tools").await;
    refused.problem(401, "Bearer");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    mira.get("/v1/tools").await.expect(200);
    for wrong in ["Bearer twk_0_0", "Bearer", "Basic bWlyYTo=", "Bearer ey.ey.ey", "Bearer twk_"] {
        served.client.with("authorization", wrong).get("/v1/tools").await.problem(401, "");
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(served.client.get(path).await.status, 200);
    }
    let id = served.keys.list().unwrap()[0].id.clone();
    served.keys.revoke(&id).unwrap();
    becomes(&mira, 401).await;
    mira.get("/v1/tools").await.problem(401, "revoked");
    served.client.get("/v1/tools").await.problem(401, "Bearer");
}

#[tokio::test]
async fn roles_open_what_they_should() {
    let served = Served::start().await;
    let (mira, scraper, admin) = (
        served.client_of("mira", &["staff"]),
        served.client_of("scraper", &["metrics"]),
        served.client_of("root", &["admin"]),
    );
    for (path, role) in [("/v1/audit", "admin"), ("/v1/metrics", "metrics"), ("/metrics", "metrics")] {
        mira.get(path).await.problem(403, role);
        assert_eq!(admin.get(path).await.status, 200);
    }
    assert_eq!(scraper.get("/metrics").await.status, 200);
    scraper.get("/v1/audit").await.problem(403, "admin");
    assert_eq!(mira.call("of_staff", json!({ "args": {} })).await["ok"], true);
    assert_eq!(admin.call("of_staff", json!({ "args": {} })).await["error"]["type"], "AUTH");
}

#[tokio::test]
async fn a_session_is_its_principal_s_and_to_others_does_not_exist() {
    let served = Served::start().await;
    let (mira, eve, admin) =
        (served.client_of("mira", &[]), served.client_of("eve", &[]), served.client_of("root", &["admin"]));
    let made = mira.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    let id = made["sessionId"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}");
    for other in [eve, admin] {
        other.get(&path).await.problem(404, "no such session");
        other.delete(&path).await.problem(404, "no such session");
        other.post(&format!("{path}/turn"), json!({})).await.problem(404, "no such session");
        other.get(&format!("{path}/events")).await.problem(404, "no such session");
        other.post("/v1/tools/echo/call", json!({ "sessionId": id })).await.problem(404, "no such session");
    }
    assert_eq!(mira.get(&path).await.expect(200)["standing"], "active");
}

#[tokio::test]
async fn web_pages_of_other_origins_may_not_ask() {
    let served =
        Served::with(|options| options.cors_origins = vec!["https://console.example".to_owned()], None).await;
    let port = served.client.address.port();
    let body = json!({ "args": { "message": "x" } });
    for origin in
        ["http://evil.example".to_owned(), "null".to_owned(), format!("http://localhost:{}", port ^ 1)]
    {
        let page = served.client.with("origin", origin);
        page.post("/v1/tools/echo/call", body.clone()).await.problem(403, "cors_origins");
        let asked = page
            .with("access-control-request-method", "POST")
            .ask("OPTIONS", "/v1/tools/echo/call", "")
            .await;
        asked.problem(403, "cors_origins");
        assert_eq!(asked.header("access-control-allow-origin"), None);
    }
    served
        .client
        .with("host", format!("evil.example:{port}"))
        .get("/v1/tools")
        .await
        .problem(403, "loopback");
    served.client.with("sec-fetch-site", "cross-site").get("/v1/tools").await.problem(403, "cors_origins");
    let own = served.client.with("origin", format!("http://{}", served.client.address));
    assert_eq!(own.call("echo", body.clone()).await["ok"], true);
    let console = served.client.with("origin", "https://console.example");
    let answer = console.post("/v1/tools/echo/call", body).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://console.example"))
    );
    let asked =
        console.with("access-control-request-method", "POST").ask("OPTIONS", "/v1/tools/echo/call", "").await;
    assert_eq!(
        (asked.status, asked.header("access-control-allow-methods")),
        (204, Some("GET, POST, DELETE"))
    );
    assert_eq!(served.runs(), 2);
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_keys() {
    let dir = tempfile::tempdir().unwrap();
    let file = || KeyFile::new(dir.path().join("keys.json"));
    let options = || Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::default() };
    let orchestrator = Served::start().await.orchestrator.clone();
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
    file()
        .create(toolwright_server::auth::keys::NewKey { name: "mira".to_owned(), ..Default::default() })
        .unwrap();
    assert!(bind(&orchestrator, None).await.is_ok());
}

#[tokio::test]
async fn only_those_who_may_use_a_tool_see_it() {
    let served = Served::start().await;
    let all = |tools: serde_json::Value| tools["tools"].to_string().contains("of_staff");
    for (roles, sees) in [(&["admin"][..], true), (&["staff"], true), (&[], false)] {
        let client = served.client_of(&format!("with{}", roles.concat()), roles);
        assert_eq!(all(client.get("/v1/tools").await.expect(200)), sees, "{roles:?}");
        assert_eq!(client.get("/v1/tools/of_staff").await.status, if sees { 200 } else { 404 });
        assert!(!client.get("/v1/tools/of_staf").await.text().contains("`of_staff`") || sees);
    }
}
