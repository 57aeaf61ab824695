//! The console's pages about tools: the list, a tool, trying it, the prompt, toolsets.

use serde_json::json;
use toolwright_registry::toolset::{Implementation, Module, Tool};

use super::console::Browser;
use super::support::{TestServer, orchestrator_of, tool};

#[tokio::test]
async fn the_list_is_searched_and_filtered_by_its_address() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let all = browser.page("/tools").await;
    assert!(all.contains("href=\"/tools/echo\"") && all.contains("href=\"/tools/look\""), "{all}");
    let found = browser.page("/tools?q=ECHO").await;
    assert!(found.contains("href=\"/tools/echo\"") && !found.contains("href=\"/tools/look\""));
    let retrieval = browser.page("/tools?category=retrieval&mode=&effects=").await;
    assert!(retrieval.contains("href=\"/tools/look\"") && !retrieval.contains("href=\"/tools/echo\""));
    let asking = browser.page("/tools?confirmation=asks").await;
    assert!(asking.contains("href=\"/tools/send\"") && !asking.contains("href=\"/tools/echo\""));
    assert!(browser.page("/tools?q=nothing%20like%20it").await.contains("No tool matches."));
}

#[tokio::test]
async fn a_long_list_has_pages() {
    let tools = (0..120).map(|index| tool(&format!("tool_{index:03}"), &json!({}))).collect();
    let (runs, permits) = (Default::default(), std::sync::Arc::new(tokio::sync::Semaphore::new(0)));
    let orchestrator = orchestrator_of(tools, &runs, &permits, |builder| builder);
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let browser = Browser::new(&server.client);
    let first = browser.page("/tools?category=action").await;
    assert!(first.contains("1–50 of 120 tools") && first.contains("/tools/tool_049\""), "{first}");
    assert!(!first.contains("/tools/tool_050\""));
    assert!(first.contains("href=\"/tools?category=action&#38;page=2\" rel=\"next\""), "{first}");
    let last = browser.page("/tools?category=action&page=3").await;
    assert!(last.contains("101–120 of 120 tools") && !last.contains("rel=\"next\""));
    assert!(browser.page("/tools?page=999999").await.contains("rel=\"prev\""));
    assert_eq!(browser.get("/tools?page=x").await.status, 400);
}

#[tokio::test]
async fn others_see_only_the_tools_that_they_may_use() {
    let server = TestServer::start().await;
    let (admin_key, user_key) = (server.create_key("ada", &["admin"]), server.create_key("jon", &[]));
    let (mut admin, mut user) = (Browser::new(&server.client), Browser::new(&server.client));
    admin.sign_in(&admin_key).await;
    user.sign_in(&user_key).await;
    assert!(admin.page("/tools").await.contains("/tools/staff_only\""));
    assert!(!user.page("/tools").await.contains("/tools/staff_only\""));
    assert_eq!(user.get("/tools/staff_only").await.status, 404);
    assert_eq!(user.get("/toolsets").await.status, 403);
    assert!(user.get("/toolsets").await.text().contains("needs the role admin"));
    assert!(!user.page("/prompt").await.contains("staff_only"));
    assert!(!user.page("/").await.contains("href=\"/toolsets\""));
    assert_eq!(user.submit("/tools/echo", "/tools/staff_only/try", &[("mode", "text")]).await.status, 404);
}

#[tokio::test]
async fn a_tool_is_called_from_its_form() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let fields = [("mode", "text"), ("from", "form"), ("args/message", "hello <b>"), ("args/times", "2")];
    let answer = browser.submit("/tools/echo", "/tools/echo/try", &fields).await;
    assert_eq!(answer.status, 200);
    let page = answer.text();
    assert!(page.contains("chip ok\">ok<") && page.contains("&#34;times&#34;: 2"), "{page}");
    assert!(page.contains("hello &#60;b&#62;") && !page.contains("hello <b>"));
    assert!(page.contains("/v1/tools/echo/call"), "a curl command");
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn errors_are_shown_at_the_field_they_are_about() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let fields = [("mode", "text"), ("from", "form"), ("args/message", "x"), ("args/times", "2.5")];
    let page = browser.submit("/tools/echo", "/tools/echo/try", &fields).await.text().to_owned();
    let (_, field) = page.split_once("name=\"args/times\"").unwrap();
    let field = field.split("</div>").next().unwrap();
    assert!(field.contains("aria-invalid=\"true\"") && field.contains("must be integer"), "{field}");
    assert!(page.contains("VALIDATION"), "the envelope is shown too");
    let fields = [("mode", "text"), ("from", "form"), ("args/message", "x"), ("args/times", "many")];
    let page = browser.submit("/tools/echo", "/tools/echo/try", &fields).await.text().to_owned();
    assert!(page.contains("must be a whole number") && page.contains("value=\"many\""), "{page}");
    let fields = [("mode", "text"), ("from", "json"), ("json", "{")];
    let page = browser.submit("/tools/echo", "/tools/echo/try", &fields).await.text().to_owned();
    assert!(page.contains("This must be JSON"), "{page}");
    assert_eq!(server.runs(), 0);
    let fields = [("mode", "text"), ("from", "json"), ("json", "{\"message\": \"by JSON\"}")];
    assert!(browser.submit("/tools/echo", "/tools/echo/try", &fields).await.text().contains("by JSON"));
}

#[tokio::test]
async fn a_call_that_needs_approval_says_so_without_the_token() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let fields = [("mode", "text"), ("from", "form"), ("args/to", "mira")];
    let page = browser.submit("/tools/send", "/tools/send/try", &fields).await.text().to_owned();
    assert!(page.contains("A person has to approve this call.") && page.contains("waits for approval"));
    assert!(!page.contains("confirmation_token"), "{page}");
    assert!(browser.page("/").await.contains("data-pending>1<"), "the badge counts it");
}

#[tokio::test]
async fn a_tool_has_documentation_parameters_and_the_forms_of_all_providers() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    assert!(browser.page("/tools/echo?tab=documentation").await.contains("<p>Does work.</p>"));
    let parameters = browser.page("/tools/echo?tab=parameters").await;
    assert!(parameters.contains("<b class=\"mono\">times</b>") && parameters.contains("Default 1."));
    let models = browser.page("/tools/echo?tab=models").await;
    for title in ["OpenAI", "Anthropic", "Gemini", "Model Context Protocol"] {
        assert!(models.contains(title), "{title}");
    }
    assert!(models.contains("**echo** (utility): Does work."));
    let missing = browser.get("/tools/ecko").await;
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("Did you mean `echo`?"));
    let again = browser.page("/tools/echo?args=%7B%22message%22%3A%22again%22%7D").await;
    assert!(again.contains("value=\"again\""));
}

#[tokio::test]
async fn the_prompt_is_shown_per_mode_with_an_estimate() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let page = browser.page("/prompt?mode=voice").await;
    assert!(page.contains("# Available Tools") && page.contains("tokens, estimated"), "{page}");
    assert!(page.contains("href=\"/prompt?mode=voice\" aria-current=\"true\""));
}

#[tokio::test]
async fn toolsets_are_listed_and_compared() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    server.session("text").await;
    let page = browser.page("/toolsets").await;
    assert!(page.contains("<span class=\"chip ok\">current</span>"), "{page}");
    let (_, id) = server.orchestrator.current_version();
    let id = id.replace('+', "%2B");
    let same = browser.page(&format!("/toolsets?from={id}&to={id}")).await;
    assert!(same.contains("0 added, 0 removed, 0 changed, 6 unchanged."), "{same}");
    assert_eq!(browser.get(&format!("/toolsets?from=none&to={id}")).await.status, 404);
}

#[tokio::test]
async fn a_call_is_saved_as_a_test_only_where_the_tools_have_a_directory() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let fields = [("mode", "text"), ("args", "{}"), ("expect", "{}"), ("name", "It works")];
    let refused = browser.submit("/tools/echo", "/tools/echo/tests", &fields).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("when the server runs on a tools directory"), "{}", refused.text());
}

#[tokio::test]
async fn a_saved_call_is_a_test_file_of_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("echo")).unwrap();
    let path = "echo/handler.js".to_owned();
    let module = Module { path, sha256: String::new(), modules: Default::default() };
    let echo = Tool { implementation: Implementation::Module(module), ..tool("echo", &json!({})) };
    let (runs, permits) = (Default::default(), std::sync::Arc::new(tokio::sync::Semaphore::new(0)));
    let orchestrator = orchestrator_of(vec![echo], &runs, &permits, |builder| builder);
    let tools = dir.path().to_owned();
    let server =
        TestServer::set_up(orchestrator, runs, permits, |options| options.tools_dir = Some(tools), None)
            .await;
    let browser = Browser::new(&server.client);
    let fields = [
        ("mode", "voice"),
        ("args", "{\"a\":1}"),
        ("expect", "{\"ok\":true,\"data\":{}}"),
        ("name", "../It works"),
    ];
    let saved = browser.submit("/tools/echo", "/tools/echo/tests", &fields).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    assert!(browser.page(saved.header("location").unwrap()).await.contains("The test is saved."));
    let text = std::fs::read_to_string(dir.path().join("echo/tests/it-works.json")).unwrap();
    let case: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = json!({ "name": "../It works", "args": { "a": 1 }, "mode": "voice", "expect": { "ok": true, "data": {} } });
    assert_eq!(case, expected);
    assert_eq!(browser.submit("/tools/echo", "/tools/echo/tests", &fields).await.status, 409);
}
