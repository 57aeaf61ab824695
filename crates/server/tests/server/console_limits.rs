//! What the console shows of long and hostile text, to whom, and what links cannot make it say.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use super::client::Response;
use super::console::{Browser, csrf};
use super::console_activity::{OneRecord, location, signed_in};
use super::support::{TestServer, orchestrator_of, tool};

/// Nearly as much as a request may have.
const LONG: usize = 900_000;
/// A right-to-left override.
const TURNED: char = '\u{202e}';

#[tokio::test]
async fn a_long_result_is_cut_and_a_link_has_all_of_it() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let text = "<b>".repeat(LONG / 9);
    let fields = [("mode", "text"), ("from", "json"), ("json", &json!({ "message": text }).to_string())];
    let page = browser.submit("/tools/echo", "/tools/echo/try", &fields).await;
    assert_eq!(page.status, 200);
    let (_, result) = page.text().split_once("<h2>Result</h2>").unwrap();
    assert!(result.len() < 500_000, "the result is {} bytes of the page", result.len());
    assert!(result.contains("The first 66 KB of 300 KB.") && !result.contains("<b><b>"), "{result}");
    let (_, link) = result.split_once("<a href=\"/v1/calls/").unwrap();
    let whole = format!("/v1/calls/{}", link.split('"').next().unwrap());
    let call = server.client.get(&whole).await.json();
    assert_eq!(call["envelope"]["data"]["args"]["message"], text.as_str());
    assert!(
        result.contains("Arguments and result of a saved test may have 66 KB")
            || !result.contains("Save as test")
    );
    let href = result.split("<a href=\"/calls/").nth(1).unwrap().split('"').next().unwrap();
    let call = browser.page(&format!("/calls/{href}")).await;
    assert!(call.len() < 700_000 && call.contains("All of it"), "{} bytes", call.len());
}

#[tokio::test]
async fn a_long_request_is_cut_and_reordered_text_is_shown_to_the_approver() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let session = server.session("text").await;
    let to = format!("mira{TURNED}<script>{}", "x".repeat(LONG));
    server.client.call("send", json!({ "args": { "to": to }, "sessionId": session })).await;
    let page = browser.page("/confirmations").await;
    assert!(page.len() < 60_000, "{} bytes", page.len());
    assert!(!page.contains(TURNED) && !page.contains("<script>x"), "{page}");
    assert!(page.contains("Send to mira\\u202e&#60;script&#62;"), "{page}");
    assert!(page.contains("&#34;to&#34;: &#34;mira\\u202e&#60;script&#62;"), "{page}");
    assert!(page.contains("too long to be edited here") && !page.contains("Edit and approve"));
    let (_, link) = page.split_once("href=\"/v1/confirmations/").unwrap();
    let request =
        server.client.get(&format!("/v1/confirmations/{}", link.split('"').next().unwrap())).await.json();
    assert_eq!(request["args"]["to"], to.as_str());
    let calls = browser.page("/calls").await;
    assert!(calls.len() < 60_000 && !calls.contains(TURNED));
}

#[tokio::test]
async fn hostile_names_stay_text_on_every_page() {
    let hostile = format!("<script>{TURNED}javascript:{}", "y".repeat(200));
    let server = TestServer::start().await;
    let admin = signed_in(&server, "root", &["admin"]).await;
    let client = server.client_with_key(&hostile, &["admin"]);
    let body = json!({ "mode": "text", "sessionId": &hostile[..256.min(hostile.len())], "clientId": "c" });
    let session = client.post("/v1/sessions", body).await.expect(201);
    let id = session["sessionId"].as_str().unwrap();
    let call = json!({ "args": { "call": &hostile }, "sessionId": id, "executionId": &hostile });
    client.call("write", call).await;
    client.call("send", json!({ "args": { "to": "x" }, "sessionId": id })).await;
    let part = url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20");
    let pages = ["/", "/calls", "/sessions", "/audit", "/confirmations", "/usage"].map(str::to_owned);
    for path in
        pages.into_iter().chain([format!("/sessions/{part}"), format!("/calls/{part}?session={part}")])
    {
        let response = admin.get(&path).await;
        let page = response.text();
        assert!(!page.contains("<script>") && !page.contains(TURNED), "{path}: {page}");
        assert!(!page.contains("href=\"javascript:"), "{path}");
        if path != "/usage" {
            assert!(page.contains("\\u202e"), "{path} does not show the name: {page}");
        }
    }
}

#[tokio::test]
async fn a_link_cannot_put_its_own_text_on_a_page() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    for path in ["/tools/echo?saved=Call%200800%20now", "/kb?added=Call%200800%20now"] {
        let page = browser.page(path).await;
        assert!(
            !page.contains("Call 0800 now") && !page.contains("is saved") && !page.contains("Added."),
            "{page}"
        );
    }
}

#[tokio::test]
async fn a_call_is_made_again_in_its_mode() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let session = server.session("voice").await;
    server.client.call("write", json!({ "args": {}, "sessionId": session, "executionId": "c1" })).await;
    let page = format!("/calls/c1?session={session}");
    assert!(browser.page(&page).await.contains("tab=try&#38;mode=voice"));
    let made = browser.submit(&page, &format!("/calls/c1/again?session={session}"), &[("args", "{}")]).await;
    let (_, own) = location(&made).split_once("session=").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let new = server.client.get(&format!("/v1/sessions/{own}")).await.expect(200);
    assert_eq!(new["mode"], "voice");
}

#[tokio::test]
async fn a_refused_form_of_a_tool_has_status_422() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let status = async |fields: &[(&str, &str)]| {
        let answer: Response = browser.submit("/tools/echo", "/tools/echo/try", fields).await;
        answer.status
    };
    assert_eq!(status(&[("mode", "text"), ("from", "json"), ("json", "{")]).await, 422);
    assert_eq!(status(&[("mode", "text"), ("from", "form"), ("args/times", "many")]).await, 422);
    assert_eq!(
        status(&[("mode", "text"), ("from", "json"), ("json", "{}")]).await,
        422,
        "an argument is missing"
    );
    assert_eq!(status(&[("mode", "text"), ("from", "json"), ("json", "{\"message\": \"x\"}")]).await, 200);
}

#[tokio::test]
async fn the_page_of_a_tool_has_its_last_calls_and_tells_tags_from_modes() {
    let (runs, permits) = (Default::default(), Arc::new(Semaphore::new(0)));
    let tools = vec![
        tool("mine", &json!({ "tags": ["voice"], "allowedModes": ["text"] })),
        tool("other", &json!({})),
    ];
    let orchestrator = orchestrator_of(tools, &runs, &permits, |builder| builder);
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let (ada, mira) = (signed_in(&server, "ada", &[]).await, signed_in(&server, "mira", &[]).await);
    assert!(ada.page("/tools/mine").await.contains("Nobody has called this tool yet."));
    for name in ["mine", "other"] {
        server.client_with_key("ada", &[]).call(name, json!({ "args": {} })).await;
    }
    let page = ada.page("/tools/mine").await;
    let (_, calls) = page.split_once("Recent calls").unwrap();
    assert!(
        calls.contains(">mine<") && !calls.contains(">other<") && calls.contains("studio/ada"),
        "{calls}"
    );
    assert!(mira.page("/tools/mine").await.contains("Nobody has called this tool yet."), "calls of others");
    assert!(page.contains(">in text<") && page.contains(">#voice<"), "{page}");
}

#[tokio::test]
async fn the_knowledge_base_is_for_those_who_may_search_it() {
    let (runs, permits) = (Default::default(), Arc::new(Semaphore::new(0)));
    let search = tool("kb_search", &json!({ "permissions": { "roles": ["staff"] } }));
    let orchestrator = orchestrator_of(vec![search], &runs, &permits, |builder| builder);
    let change =
        |options: &mut toolwright_server::Options| options.knowledge_base = Some(Arc::new(OneRecord));
    let server = TestServer::set_up(orchestrator, runs, permits, change, None).await;
    let (mira, jon) = (signed_in(&server, "mira", &["staff"]).await, signed_in(&server, "jon", &[]).await);
    let admin = signed_in(&server, "root", &["admin"]).await;
    for path in ["/kb", "/kb?q=tea", "/kb/doc%3Atea"] {
        assert_eq!(jon.get(path).await.status, 403, "{path}");
        assert_eq!(mira.get(path).await.status, 200, "{path}");
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    assert!(jon.get("/kb").await.text().contains("users who may use the tool `kb_search`"));
    assert!(!jon.page("/").await.contains("href=\"/kb\"") && mira.page("/").await.contains("href=\"/kb\""));
}

#[tokio::test]
async fn the_voice_page_lists_the_tools_of_a_voice_session() {
    let (runs, permits) = (Default::default(), Arc::new(Semaphore::new(0)));
    let only = |condition: &str| json!({ "availability": { "condition": condition } });
    let tools = vec![
        tool("in_voice", &only("mode == 'voice'")),
        tool("in_text", &only("mode == 'text'")),
        tool("for_staff", &json!({ "permissions": { "roles": ["staff"] } })),
        tool("text_only", &json!({ "allowedModes": ["text"] })),
    ];
    let orchestrator = orchestrator_of(tools, &runs, &permits, |builder| builder);
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let page = signed_in(&server, "jon", &[]).await.page("/talk").await;
    let listed: Vec<&str> = page
        .split("<li><a class=\"mono\" href=\"/tools/")
        .skip(1)
        .map(|part| part.split('"').next().unwrap())
        .collect();
    assert_eq!(listed, ["in_voice"]);
}

#[tokio::test]
async fn a_session_shows_all_meters_with_their_limits() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let meters =
        async || server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)["meters"].clone();
    let limit = meters().await[0]["limit"].as_u64().unwrap();
    assert_eq!(
        meters().await,
        json!([{ "meter": "retrieval", "scope": "turn", "spent": 0, "limit": limit }])
    );
    server.client.call("look", json!({ "args": {}, "sessionId": session })).await;
    assert_eq!(meters().await[0]["spent"], 1);
    let page = Browser::new(&server.client).page(&format!("/sessions/{session}")).await;
    let row =
        format!("<td>retrieval</td><td>turn</td><td class=\"num\">1</td><td class=\"num\">{limit}</td>");
    assert!(page.contains(&row), "{page}");
}

#[tokio::test]
async fn a_verification_leads_back_to_the_page_with_its_filters() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    server.client.call("echo", json!({ "args": { "message": "x" } })).await;
    let page = browser.page("/audit?tool=echo").await;
    assert!(page.contains("action=\"/audit/verify?tool=echo\"") && !page.contains("The audit"), "{page}");
    let verified = browser.submit("/audit", "/audit/verify?tool=echo", &[]).await;
    assert_eq!(location(&verified), "/audit?tool=echo");
    assert!(browser.page("/audit?tool=echo").await.contains("The audit is intact."));
}

#[tokio::test]
async fn a_member_can_do_nothing_for_others_and_nothing_of_an_admin() {
    let server = TestServer::start().await;
    let ada = server.client_with_key("ada", &[]);
    let session = ada.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201)["sessionId"].clone();
    let session = session.as_str().unwrap();
    ada.call("write", json!({ "args": {}, "sessionId": session, "executionId": "c1" })).await;
    let asked = ada.call("send", json!({ "args": { "to": "x" }, "sessionId": session })).await;
    let request = asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    let runs = server.runs();
    let mira = signed_in(&server, "mira", &[]).await;
    let token = csrf(&mira.page("/").await);
    let actions = [
        ("/tools/echo/tests".to_owned(), 403),
        ("/audit/verify".to_owned(), 403),
        ("/kb/add".to_owned(), 403),
        ("/tools/staff_only/try".to_owned(), 404),
        (format!("/sessions/{session}/end"), 404),
        (format!("/calls/c1/again?session={session}"), 404),
        (format!("/confirmations/{request}/approve"), 404),
        (format!("/confirmations/{request}/reject"), 404),
    ];
    let fields =
        [("csrf", token.as_str()), ("mode", "text"), ("name", "a"), ("args", "{}"), ("expect", "{}")];
    for (path, status) in &actions {
        assert_eq!(mira.post(path, &fields).await.status, *status, "{path}");
        assert_eq!(
            Browser::new(&server.client).post(path, &fields).await.status,
            401,
            "{path} without a sign-in"
        );
    }
    let posts = toolwright_server::route::ROUTES
        .iter()
        .filter(|route| route.is_of_console() && route.method == "POST");
    let paths: Vec<&str> = posts.map(|route| route.path).filter(|path| !path.starts_with("/sign-")).collect();
    assert_eq!(paths.len(), actions.len(), "an action is not in this test: {paths:?}");
    assert_eq!(server.runs(), runs, "nothing has run");
    let open = ada.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(open["standing"], "active");
}

#[tokio::test]
async fn the_badge_of_all_pages_is_read_by_itself() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    assert_eq!(browser.get("/confirmations/count").await.json(), json!({ "waiting": 0 }));
    let session = server.session("text").await;
    server.client.call("send", json!({ "args": { "to": "x" }, "sessionId": session })).await;
    assert_eq!(browser.get("/confirmations/count").await.json(), json!({ "waiting": 1 }));
}
