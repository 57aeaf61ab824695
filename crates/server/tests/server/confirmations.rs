//! `/v1/confirmations`: who may read and answer confirmation requests.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_orchestrator::policy::Policy;

use super::client::Client;
use super::support::{TestServer, orchestrator_with};

async fn request_confirmation(client: &Client, args: Value) -> (String, String) {
    let envelope = client.call("send", json!({ "args": args })).await;
    let request = &envelope["error"]["details"]["confirmation_request"];
    let text = |name: &str| request[name].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned();
    (text("confirmation_id"), text("confirmation_token"))
}

fn path(id: &str, action: &str) -> String {
    format!("/v1/confirmations/{id}{action}")
}

#[tokio::test]
async fn a_confirmation_request_is_read_and_answered_once() {
    let server = TestServer::start().await;
    let (id, _) = request_confirmation(&server.client, json!({ "to": "mira", "password": "hunter2" })).await;
    let listed = server.client.get("/v1/confirmations").await.expect(200);
    assert_eq!(listed["confirmations"].as_array().unwrap().len(), 1);
    let seen = server.client.get(&path(&id, "")).await.expect(200);
    assert_eq!(listed["confirmations"][0], seen);
    assert_eq!((&seen["preview"], &seen["answer"]), (&"Send to mira?".into(), &"pending".into()));
    assert!(!seen.to_string().contains("hunter2"), "{seen}");
    let envelope = server.client.post(&path(&id, "/approve"), json!({})).await.expect(200);
    assert_eq!(envelope["data"]["args"], json!({ "to": "mira", "password": "hunter2" }));
    server.client.post(&path(&id, "/approve"), json!({})).await.problem(409, "answered already");
    server.client.post(&path(&id, "/reject"), json!({})).await.problem(409, "answered already");
    let after = server.client.get(&path(&id, "")).await.expect(200);
    assert_eq!((&after["answer"], &after["decidedBy"]), (&"used".into(), &"local".into()));
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn arguments_may_be_edited_and_are_validated_again() {
    let server = TestServer::start().await;
    let (id, token) = request_confirmation(&server.client, json!({ "to": "mira" })).await;
    server
        .client
        .post(&path(&id, "/approve"), json!({ "args": { "too": "ada" } }))
        .await
        .problem(422, "did you mean `to`?");
    server
        .client
        .post(&path(&id, "/approve"), json!({ "args": {}, "remember": true }))
        .await
        .problem(422, "leave `args` out");
    server
        .client
        .post(&path(&id, "/approve"), json!({ "arg": {} }))
        .await
        .problem(400, "did you mean `args`?");
    let envelope =
        server.client.post(&path(&token, "/approve"), json!({ "args": { "to": "ada" } })).await.expect(200);
    assert_eq!(envelope["data"]["args"]["to"], "ada");
}

#[tokio::test]
async fn a_rejected_call_does_not_run() {
    let server = TestServer::start().await;
    let (id, token) = request_confirmation(&server.client, json!({ "to": "mira" })).await;
    let forged = format!("{}0000", &token[..token.len() - 4]);
    server.client.post(&path(&forged, "/reject"), json!({})).await.problem(409, "The token is wrong");
    let envelope =
        server.client.post(&path(&id, "/reject"), json!({ "reason": "not now" })).await.expect(200);
    assert_eq!(envelope["error"]["message"], "The user declined this call: not now");
    assert_eq!(server.runs(), 0);
    server.client.get(&path("conf_none", "")).await.problem(404, "Confirmation request `");
}

#[tokio::test]
async fn no_error_quotes_the_secret_of_a_token() {
    let server = TestServer::start().await;
    let (id, token) = request_confirmation(&server.client, json!({ "to": "mira" })).await;
    let page = server.client.with("accept", "text/html".to_owned());
    for (client, path) in [
        (&server.client, format!("/v1/confirmations/{token}/aprove")),
        (&server.client, format!("/v1/confirmations/conf_none.{token}/approve")),
        (&page, format!("/confirmations/{}/approve/x", token.replace('.', "%2E"))),
    ] {
        let response = client.request("POST", &path, "{}").await;
        assert_eq!(response.status, 404, "{path}");
        assert!(!response.text().contains(&token[id.len() + 1..]), "{}", response.text());
    }
}

#[tokio::test]
async fn an_approval_can_be_remembered_for_the_session() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let send = |id: &str| json!({ "sessionId": session, "executionId": id, "args": { "to": "mira" } });
    let first = server.client.call("send", send("a")).await;
    let id = first["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    server.client.post(&path(id, "/approve"), json!({ "remember": true })).await.expect(200);
    assert_eq!(server.client.call("send", send("b")).await["ok"], true);
}

#[tokio::test]
async fn confirmation_requests_are_visible_to_the_principal_and_to_admins() {
    let server = TestServer::start().await;
    let (mira, eve, admin) = (
        server.client_with_key("mira", &[]),
        server.client_with_key("eve", &[]),
        server.client_with_key("root", &["admin"]),
    );
    let (id, _) = request_confirmation(&mira, json!({ "to": "ada" })).await;
    let session = mira.get(&path(&id, "")).await.expect(200)["sessionId"].as_str().unwrap().to_owned();
    for action in ["", "/approve", "/reject"] {
        let (method, body) = if action.is_empty() { ("GET", "") } else { ("POST", "{}") };
        eve.request(method, &path(&id, action), body).await.problem(404, "Confirmation request `");
    }
    eve.get(&format!("/v1/confirmations?sessionId={session}")).await.problem(404, "Session `");
    assert_eq!(eve.get("/v1/confirmations").await.expect(200), json!({ "confirmations": [], "next": null }));
    let all = admin.get("/v1/confirmations").await.expect(200);
    assert_eq!(all["confirmations"][0]["confirmationId"], id.as_str());
    let one = mira.get(&format!("/v1/confirmations?sessionId={session}")).await.expect(200);
    assert_eq!(one, all);
    assert_eq!(admin.post(&path(&id, "/approve"), json!({})).await.expect(200)["ok"], true);
    assert_eq!(mira.get(&path(&id, "")).await.expect(200)["decidedBy"], "root");
}

#[tokio::test]
async fn confirmation_requests_are_listed_in_pages() {
    let server = TestServer::start().await;
    let (mira, jon) = (server.client_with_key("mira", &[]), server.client_with_key("jon", &[]));
    let admin = server.client_with_key("ada", &["admin"]);
    for number in 0..5 {
        request_confirmation(if number == 2 { &jon } else { &mira }, json!({ "to": number.to_string() }))
            .await;
    }
    for (client, expected) in [(&mira, "0134"), (&jon, "2"), (&admin, "01234")] {
        let mut all = Vec::new();
        let mut path = "/v1/confirmations?limit=2".to_owned();
        loop {
            let page = client.get(&path).await.expect(200);
            let requests = page["confirmations"].as_array().unwrap();
            assert!(requests.len() <= 2, "{page}");
            all.extend(requests.iter().map(|asked| asked["args"]["to"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/v1/confirmations?limit=2&after={next}");
        }
        // Requests of the same millisecond are in any order.
        all.sort();
        assert_eq!(all.concat(), expected);
    }
    mira.get("/v1/confirmations?after=x").await.problem(400, "`next` of the page before");
    mira.get("/v1/confirmations?limit=1001").await.problem(400, "up to 1000");
}

#[tokio::test]
async fn a_client_answers_with_the_token_and_an_admin_with_the_id() {
    let server = TestServer::start().await;
    let (mira, admin) = (server.client_with_key("mira", &[]), server.client_with_key("root", &["admin"]));
    let (id, token) = request_confirmation(&mira, json!({ "to": "ada" })).await;
    for action in ["/approve", "/reject"] {
        let refused = mira.post(&path(&id, action), json!({})).await.problem(403, "instead of its id");
        assert_eq!(refused["type"], "urn:toolwright:problem:confirmation-token-required");
    }
    assert_eq!(server.runs(), 0);
    assert_eq!(mira.post(&path(&token, "/approve"), json!({})).await.expect(200)["ok"], true);
    let (other, _) = request_confirmation(&mira, json!({ "to": "jon" })).await;
    assert_eq!(admin.post(&path(&other, "/approve"), json!({})).await.expect(200)["ok"], true);
    assert_eq!(server.runs(), 2);
}

#[tokio::test]
async fn answered_expired_and_a_wrong_token_are_three_problems() {
    let server = TestServer::start().await;
    let mira = server.client_with_key("mira", &[]);
    let (id, token) = request_confirmation(&mira, json!({ "to": "ada" })).await;
    let problem = async |token: &str| {
        mira.post(&path(token, "/approve"), json!({})).await.problem(409, "")["type"].clone()
    };
    assert_eq!(
        problem(&format!("{id}.{}", "0".repeat(64))).await,
        "urn:toolwright:problem:confirmation-token-wrong"
    );
    mira.post(&path(&token, "/reject"), json!({})).await.expect(200);
    assert_eq!(problem(&token).await, "urn:toolwright:problem:confirmation-answered");
    // A server whose requests expire at once.
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let policy = Policy { confirmation_ms: 0, ..Policy::default() };
    let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.policy(policy));
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let mira = server.client_with_key("mira", &[]);
    let (late, token) = request_confirmation(&mira, json!({ "to": "jon" })).await;
    let refused = mira.post(&path(&token, "/approve"), json!({})).await.problem(409, "can be made again");
    assert_eq!(refused["type"], "urn:toolwright:problem:confirmation-expired");
    assert_eq!(mira.get(&path(&late, "")).await.expect(200)["answer"], "expired");
}

#[tokio::test]
async fn the_form_for_models_has_no_token() {
    let server = TestServer::start().await;
    let body = json!({ "args": { "to": "ada" }, "executionId": "one" });
    let call =
        async |query: &str| server.client.post(&format!("/v1/tools/send/call{query}"), body.clone()).await;
    let (client, model) = (call("").await.expect(200), call("?for=model").await.expect(200));
    let request = |envelope: &Value| envelope["error"]["details"]["confirmation_request"].clone();
    assert!(request(&client)["confirmation_token"].is_string(), "{client}");
    assert!(!model.to_string().contains("confirmation_token"), "{model}");
    assert_eq!(request(&model)["confirmation_id"], request(&client)["confirmation_id"]);
    call("?for=people").await.problem(400, "must be `model`");
}
