//! `/v1/confirmations`: who may see a question, and who may answer it.

use serde_json::{Value, json};

use super::client::Client;
use super::support::Served;

async fn asked(client: &Client, args: Value) -> (String, String) {
    let envelope = client.call("send", json!({ "args": args })).await;
    let request = &envelope["error"]["details"]["confirmation_request"];
    let text = |name: &str| request[name].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned();
    (text("confirmation_id"), text("confirmation_token"))
}

fn at(id: &str, what: &str) -> String {
    format!("/v1/confirmations/{id}{what}")
}

#[tokio::test]
async fn a_question_is_seen_and_answered_once() {
    let served = Served::start().await;
    let (id, _) = asked(&served.client, json!({ "to": "mira", "password": "hunter2" })).await;
    let listed = served.client.get("/v1/confirmations").await.expect(200);
    assert_eq!(listed["confirmations"].as_array().unwrap().len(), 1);
    let seen = served.client.get(&at(&id, "")).await.expect(200);
    assert_eq!(listed["confirmations"][0], seen);
    assert_eq!((&seen["preview"], &seen["answer"]), (&"Send to mira?".into(), &"pending".into()));
    assert!(!seen.to_string().contains("hunter2"), "{seen}");
    let envelope = served.client.post(&at(&id, "/approve"), json!({})).await.expect(200);
    assert_eq!(envelope["data"]["args"], json!({ "to": "mira", "password": "hunter2" }));
    served.client.post(&at(&id, "/approve"), json!({})).await.problem(409, "answered already");
    served.client.post(&at(&id, "/reject"), json!({})).await.problem(409, "answered already");
    let after = served.client.get(&at(&id, "")).await.expect(200);
    assert_eq!((&after["answer"], &after["decidedBy"]), (&"used".into(), &"local".into()));
    assert_eq!(served.runs(), 1);
}

#[tokio::test]
async fn arguments_may_be_edited_and_are_validated_again() {
    let served = Served::start().await;
    let (id, token) = asked(&served.client, json!({ "to": "mira" })).await;
    served
        .client
        .post(&at(&id, "/approve"), json!({ "args": { "too": "ada" } }))
        .await
        .problem(422, "did you mean `to`?");
    served
        .client
        .post(&at(&id, "/approve"), json!({ "args": {}, "remember": true }))
        .await
        .problem(422, "leave `args` out");
    served.client.post(&at(&id, "/approve"), json!({ "arg": {} })).await.problem(400, "did you mean `args`?");
    let envelope =
        served.client.post(&at(&token, "/approve"), json!({ "args": { "to": "ada" } })).await.expect(200);
    assert_eq!(envelope["data"]["args"]["to"], "ada");
}

#[tokio::test]
async fn a_no_is_a_no() {
    let served = Served::start().await;
    let (id, token) = asked(&served.client, json!({ "to": "mira" })).await;
    let forged = format!("{}0000", &token[..token.len() - 4]);
    served.client.post(&at(&forged, "/reject"), json!({})).await.problem(409, "token is wrong");
    let envelope = served.client.post(&at(&id, "/reject"), json!({ "reason": "not now" })).await.expect(200);
    assert_eq!(envelope["error"]["message"], "The user declined this call: not now");
    assert_eq!(served.runs(), 0);
    served.client.get(&at("conf_none", "")).await.problem(404, "no such confirmation");
}

#[tokio::test]
async fn a_yes_may_be_remembered_for_the_session() {
    let served = Served::start().await;
    let session = served.session("text").await;
    let send = |id: &str| json!({ "sessionId": session, "executionId": id, "args": { "to": "mira" } });
    let first = served.client.call("send", send("a")).await;
    let id = first["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    served.client.post(&at(id, "/approve"), json!({ "remember": true })).await.expect(200);
    assert_eq!(served.client.call("send", send("b")).await["ok"], true);
}

#[tokio::test]
async fn questions_belong_to_the_session_s_principal_and_to_admins() {
    let served = Served::start().await;
    let (mira, eve, admin) =
        (served.client_of("mira", &[]), served.client_of("eve", &[]), served.client_of("root", &["admin"]));
    let (id, _) = asked(&mira, json!({ "to": "ada" })).await;
    let session = mira.get(&at(&id, "")).await.expect(200)["sessionId"].as_str().unwrap().to_owned();
    for what in ["", "/approve", "/reject"] {
        let (method, body) = if what.is_empty() { ("GET", "") } else { ("POST", "{}") };
        eve.ask(method, &at(&id, what), body).await.problem(404, "no such confirmation");
    }
    eve.get(&format!("/v1/confirmations?sessionId={session}")).await.problem(404, "no such session");
    assert_eq!(eve.get("/v1/confirmations").await.expect(200), json!({ "confirmations": [] }));
    let all = admin.get("/v1/confirmations").await.expect(200);
    assert_eq!(all["confirmations"][0]["confirmationId"], id.as_str());
    let one = mira.get(&format!("/v1/confirmations?sessionId={session}")).await.expect(200);
    assert_eq!(one, all);
    assert_eq!(admin.post(&at(&id, "/approve"), json!({})).await.expect(200)["ok"], true);
    assert_eq!(mira.get(&at(&id, "")).await.expect(200)["decidedBy"], "root");
}
