//! The console's pages about what was done, and their actions, for an admin and for others.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_server::knowledge_base::{
    KbAddError, KbAdded, KbHit, KbQuery, KbRecord, KbResults, KbText, KnowledgeBase,
};

use super::client::Response;
use super::console::Browser;
use super::support::TestServer;

/// A browser that has signed in with a new key.
pub async fn signed_in(server: &TestServer, name: &str, roles: &[&str]) -> Browser {
    let mut browser = Browser::new(&server.client);
    assert_eq!(browser.sign_in(&server.create_key(name, roles)).await.status, 303);
    browser
}

pub fn location(response: &Response) -> String {
    assert_eq!(response.status, 303, "{}", response.text());
    response.header("location").unwrap().to_owned()
}

#[tokio::test]
async fn calls_are_listed_filtered_and_opened() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    assert!(browser.page("/calls").await.contains("No tool was called yet"));
    let session = server.session("text").await;
    let hostile = "<script>alert(1)</script>";
    server
        .client
        .call("echo", json!({ "args": { "message": hostile }, "sessionId": session, "executionId": hostile }))
        .await;
    server
        .client
        .call(
            "write",
            json!({ "args": { "call": "read", "with": {} }, "sessionId": session, "executionId": "c1" }),
        )
        .await;
    let path = "/v1/tools/%3Cscript%3Ealert%281%29%3C%2Fscript%3E/call";
    server.client.post(path, json!({ "args": {} })).await.expect(200);
    let all = browser.page("/calls").await;
    assert!(!all.contains(hostile) && all.contains("data-live=\"call\""), "{all}");
    assert!(all.contains(">write<") && all.contains(">echo<") && all.contains("NOT_FOUND"), "{all}");
    let filtered = browser.page("/calls?tool=write").await;
    assert!(filtered.contains(">write<") && !filtered.contains(">echo<"), "{filtered}");
    assert!(browser.page("/calls?outcome=error&since=1h").await.contains("NOT_FOUND"));
    let call = browser.page(&format!("/calls/c1?session={session}")).await;
    for part in ["resolve", "settle", "&#34;with&#34;", "Calls that it has made", ">read<", "its session"] {
        assert!(call.contains(part), "no {part} in {call}");
    }
    let path = format!("/calls/%3Cscript%3Ealert%281%29%3C%2Fscript%3E?session={session}");
    let page = browser.page(&path).await;
    assert!(!page.contains(hostile), "{page}");
    assert_eq!(browser.get("/calls/none?session=none").await.status, 404);
}

#[tokio::test]
async fn a_call_is_made_again_with_edited_arguments() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let envelope = server.client.call("echo", json!({ "args": { "message": "one" } })).await;
    let calls = server.client.get("/v1/calls").await.expect(200);
    let session = calls["calls"][0]["sessionId"].as_str().unwrap();
    let id = envelope["meta"]["executionId"].as_str().unwrap();
    let (page, again) =
        (format!("/calls/{id}?session={session}"), format!("/calls/{id}/again?session={session}"));
    assert!(browser.page(&page).await.contains("one"));
    let wrong = browser.submit(&page, &again, &[("args", "[1]")]).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text().contains("must be a JSON object"), "{}", wrong.text());
    let made = browser.submit(&page, &again, &[("args", "{\"message\": \"two\"}")]).await;
    let new = browser.page(&location(&made)).await;
    assert!(new.contains("two") && new.contains("chip ok"), "{new}");
    assert_eq!(browser.post(&again, &[("args", "{}")]).await.status, 403, "a form without its token");
}

/// A call that waits for approval, of a client with this key.
async fn waiting(server: &TestServer, key: &str, id: &str) -> (String, Value) {
    let client = server.client.with("authorization", format!("Bearer {key}"));
    let session = client.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let body =
        json!({ "args": { "to": id, "password": "hunter22" }, "sessionId": session, "executionId": id });
    let refused = client.call("send", body).await;
    (session, refused["error"]["details"]["confirmation_request"].clone())
}

#[tokio::test]
async fn confirmations_are_approved_edited_and_rejected() {
    let server = TestServer::start().await;
    let key = server.create_key("ada", &[]);
    let admin = signed_in(&server, "root", &["admin"]).await;
    assert!(admin.page("/confirmations").await.contains("Nothing waits for approval"));
    let mut paths = Vec::new();
    for id in ["first", "second", "third"] {
        let (_, request) = waiting(&server, &key, id).await;
        paths.push(format!("/confirmations/{}", request["confirmation_id"].as_str().unwrap()));
    }
    let page = admin.page("/confirmations").await;
    assert!(
        page.contains("Send to first?") && page.contains("[redacted]") && !page.contains("hunter22"),
        "{page}"
    );
    assert!(page.contains("data-pending>3<"), "the badge counts them");
    let approved = admin.submit("/confirmations", &format!("{}/approve", paths[0]), &[]).await;
    assert!(admin.page(&location(&approved)).await.contains("approved"));
    let to = format!("{}/approve", paths[1]);
    let invalid = admin.submit("/confirmations", &to, &[("args", "{\"to\": 1}")]).await;
    assert_eq!(invalid.status, 422);
    assert!(invalid.text().contains("Send to second?") && invalid.text().contains("role=\"alert\""));
    let edited = admin
        .submit("/confirmations", &to, &[("args", "{\"to\": \"else\", \"password\": \"[redacted]\"}")])
        .await;
    let call = admin.page(&location(&edited)).await;
    assert!(call.contains("with edited arguments") && call.contains("else"), "{call}");
    let rejected = admin.submit("/confirmations", &format!("{}/reject", paths[2]), &[("reason", "no")]).await;
    assert!(admin.page(&location(&rejected)).await.contains("rejected"));
    assert_eq!(server.runs(), 2);
    assert_eq!(admin.submit("/confirmations", &format!("{}/approve", paths[0]), &[]).await.status, 409);
}

#[tokio::test]
async fn people_answer_only_what_is_asked_of_them() {
    let server = TestServer::start().await;
    let key = server.create_key("ada", &[]);
    let mut ada = Browser::new(&server.client);
    ada.sign_in(&key).await;
    let mira = signed_in(&server, "mira", &[]).await;
    let (session, request) = waiting(&server, &key, "mine").await;
    let path = format!("/confirmations/{}/approve", request["confirmation_id"].as_str().unwrap());
    assert!(ada.page("/confirmations").await.contains("Send to mine?"));
    assert!(mira.page("/confirmations").await.contains("Nothing waits"));
    assert_eq!(mira.submit("/confirmations", &path, &[]).await.status, 404);
    assert_eq!(mira.get(&format!("/calls/mine?session={session}")).await.status, 404);
    assert_eq!(mira.get(&format!("/sessions/{session}")).await.status, 404);
    assert!(!mira.page("/calls").await.contains(">send<"));
    assert_eq!(server.runs(), 0);
    assert_eq!(ada.submit("/confirmations", &path, &[]).await.status, 303);
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn sessions_are_listed_read_and_ended() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    assert!(browser.page("/sessions").await.contains("There is no session yet"));
    let session = server.session("text").await;
    server.client.call("look", json!({ "args": {}, "sessionId": session })).await;
    assert!(browser.page("/sessions").await.contains(&session));
    let path = format!("/sessions/{session}");
    let page = browser.page(&path).await;
    for part in ["active", ">look<", "retrieval", "End the session"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert_eq!(location(&browser.submit(&path, &format!("{path}/end"), &[]).await), path);
    let page = browser.page(&path).await;
    assert!(page.contains("ended") && !page.contains("End the session"), "{page}");
}

#[tokio::test]
async fn metrics_and_audit_are_for_admins() {
    let server = TestServer::start().await;
    let mira = signed_in(&server, "mira", &[]).await;
    let admin = signed_in(&server, "root", &["admin"]).await;
    for path in ["/usage", "/audit", "/audit/export"] {
        assert_eq!(mira.get(path).await.status, 403, "{path}");
    }
    assert!(admin.page("/usage").await.contains("No call ended in this time"));
    let client = server.client_with_key("ada", &[]);
    client.call("echo", json!({ "args": { "message": "x" } })).await;
    client.call("echo", json!({ "args": {} })).await;
    let usage = admin.page("/usage?span=6h&tool=echo").await;
    assert!(usage.contains(">echo<") && usage.contains("As a table") && usage.contains("<svg"), "{usage}");
    let audit = admin.page("/audit?event=refused").await;
    assert!(audit.contains("VALIDATION") && audit.contains("studio/ada"), "{audit}");
    let verified = admin.submit("/audit", "/audit/verify", &[]).await;
    let verified = admin.page(&location(&verified)).await;
    assert!(verified.contains("The audit is intact."), "{verified}");
    let export = admin.get("/audit/export?outcome=ok").await;
    // The response comes in chunks, each after its length.
    let lines = export.text().lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["entry"]["tool"], "echo");
}

/// A knowledge base of one record.
#[derive(Debug)]
pub struct OneRecord;

impl KnowledgeBase for OneRecord {
    fn facts(&self) -> Result<Vec<(String, String)>, String> {
        Ok(vec![("Records".to_owned(), "1".to_owned())])
    }

    fn search(&self, query: &KbQuery) -> Result<KbResults, String> {
        if query.text == "fail" {
            return Err("secret cause".to_owned());
        }
        let hit = KbHit {
            id: "doc:tea".to_owned(),
            kind: "doc".to_owned(),
            title: "<b>Tea</b>".to_owned(),
            snippet: format!("{} for {}", query.text, query.user),
            score: 0.83,
        };
        Ok(KbResults { hits: vec![hit], retrieval: "keyword".to_owned() })
    }

    fn record(&self, id: &str, _: &str) -> Result<Option<KbRecord>, String> {
        Ok((id == "doc:tea").then(|| KbRecord {
            id: id.to_owned(),
            kind: "doc".to_owned(),
            title: "<b>Tea</b>".to_owned(),
            text: "Steep it.".to_owned(),
            namespace: "studio".to_owned(),
            tags: vec!["drink".to_owned()],
            source_type: String::new(),
            last_updated: String::new(),
            url: Some("javascript:alert(1)".to_owned()),
            metadata: json!({}),
        }))
    }

    fn add(&self, text: &KbText) -> Result<KbAdded, KbAddError> {
        match text.name.as_str() {
            "tea.md" => Ok(KbAdded { records: 1, problems: Vec::new() }),
            name => Err(KbAddError::Invalid(format!("The name `{name}` is wrong."))),
        }
    }
}

#[tokio::test]
async fn the_knowledge_base_is_searched_read_and_extended() {
    let change =
        |options: &mut toolwright_server::Options| options.knowledge_base = Some(Arc::new(OneRecord));
    let server = TestServer::with(change, None).await;
    let mira = signed_in(&server, "mira", &[]).await;
    let admin = signed_in(&server, "root", &["admin"]).await;
    let found = mira.page("/kb?q=how+long&namespace=public").await;
    for part in ["how long for mira", "0.83", "&#60;b&#62;Tea&#60;/b&#62;", "/kb/doc%3Atea"] {
        assert!(found.contains(part), "no {part} in {found}");
    }
    assert!(!found.contains("Add a text"), "only admins add texts");
    let record = mira.page("/kb/doc%3Atea").await;
    assert!(record.contains("Steep it.") && !record.contains("href=\"javascript:"), "{record}");
    assert_eq!(mira.get("/kb/none").await.status, 404);
    let failed = mira.page("/kb?q=fail").await;
    assert!(failed.contains("cannot be used") && !failed.contains("secret cause"), "{failed}");
    assert_eq!(mira.get("/kb?q=a&namespace=x").await.status, 400);
    let fields = |name| [("name", name), ("text", "# Tea\r\n\r\nSteep it."), ("namespace", "studio")];
    let token = super::console::csrf(&mira.page("/kb").await);
    let refused = [("csrf", token.as_str()), ("name", "tea.md"), ("text", "x")];
    assert_eq!(mira.post("/kb/add", &refused).await.status, 403);
    let wrong = admin.submit("/kb", "/kb/add", &fields("../x")).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text().contains("`../x` is wrong") && wrong.text().contains("# Tea"), "{}", wrong.text());
    let added = admin.submit("/kb", "/kb/add", &fields("tea.md")).await;
    assert!(admin.page(&location(&added)).await.contains("1 record can be found now"));
}
