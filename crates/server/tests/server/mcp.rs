//! MCP over stdio, with and without sessions: lists, calls, confirmations, documentation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    ArgumentInfo, CallToolResponse, CompleteRequestParams, ElicitationAction, GetPromptRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams, Reference,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use super::mcp_host::{Host, REVISIONS, Revision, TestHost, call, connect_stdio, params, text};
use super::support::{orchestrator, tool, wait_until};

struct Fixture {
    host: Host,
    test_host: TestHost,
    orchestrator: Orchestrator,
    runs: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

async fn fixture(revision: Revision, answer: Option<ElicitationAction>) -> Fixture {
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let orchestrator = orchestrator(&runs, &permits);
    let test_host = TestHost::answering(answer);
    let host = connect_stdio(orchestrator.clone(), revision, test_host.clone()).await;
    Fixture { host, test_host, orchestrator, runs, permits }
}

/// A toolset with `count` tools.
fn runtime_with_tools(count: usize, version: &str) -> Runtime {
    let tools = (0..count).map(|at| tool(&format!("tool_{at:03}"), &json!({ "version": version }))).collect();
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    Runtime::builder(Arc::new(toolset), ".").build()
}

#[tokio::test]
async fn only_usable_tools_are_listed_with_their_hints() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let tools = fixture.host.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        // The local user does not have the role of `staff_only`.
        assert_eq!(names, ["echo", "look", "read", "write", "send", "reg_describe"], "{revision:?}");
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let hints = tool.annotations.as_ref().unwrap();
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        };
        assert_eq!(hints("echo"), (Some(true), Some(false), Some(true)));
        assert_eq!(hints("write"), (Some(false), Some(true), Some(false)));
    }
}

#[tokio::test]
async fn a_long_list_has_pages_and_a_foreign_cursor_is_refused() {
    let orchestrator = Orchestrator::builder(runtime_with_tools(250, "1.0.0")).build().unwrap();
    let host = connect_stdio(orchestrator, Revision::Stateless, TestHost::answering(None)).await;
    let page = host.list_tools(None).await.unwrap();
    assert_eq!(page.tools.len(), 100);
    let next = PaginatedRequestParams::default().with_cursor(page.next_cursor);
    assert_eq!(host.list_tools(Some(next)).await.unwrap().tools[0].name, "tool_100");
    assert_eq!(host.list_all_tools().await.unwrap().len(), 251);
    let foreign = PaginatedRequestParams::default().with_cursor(Some("7@9.9.9".to_owned()));
    let error = host.list_tools(Some(foreign)).await.unwrap_err().to_string();
    assert!(error.contains("list again"), "{error}");
}

#[tokio::test]
async fn a_result_has_text_and_structured_content() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let result = call(&fixture.host, "echo", json!({ "message": "hi" })).await.unwrap();
        let data = json!({ "run": 1, "args": { "message": "hi", "times": 1 } });
        assert_eq!((result.is_error, result.structured_content.as_ref()), (Some(false), Some(&data)));
        assert_eq!(text(&result), data);
        let meta = Value::Object(result.meta.unwrap().0);
        assert_eq!(meta["toolwright/meta"]["toolVersion"], "1.0.0");
    }
}

#[tokio::test]
async fn invalid_arguments_are_an_error_result_and_an_unknown_tool_a_protocol_error() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let result = call(&fixture.host, "echo", json!({ "mesage": "hi" })).await.unwrap();
        let failure = text(&result);
        assert_eq!((result.is_error, &failure["type"]), (Some(true), &json!("VALIDATION")), "{failure}");
        assert!(failure["suggestion"].is_string());
        let error = call(&fixture.host, "eco", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("There is no tool `eco`. Did you mean `echo`?"), "{error}");
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn progress_reaches_the_host_and_never_decreases() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        call(&fixture.host, "read", json!({ "progress": [0.25, 0.5, 0.4, 1.0] })).await.unwrap();
        wait_until(|| fixture.test_host.progress.lock().unwrap().len() == 3).await;
        assert_eq!(*fixture.test_host.progress.lock().unwrap(), [0.25, 0.5, 1.0], "{revision:?}");
    }
}

#[tokio::test]
async fn a_cancelled_read_ends_and_the_session_continues() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let waiting = fixture.host.call_tool_once(params("read", json!({ "wait": true })));
        tokio::select! {
            _ = waiting => panic!("the call waits"),
            () = wait_until(|| fixture.runs.load(Ordering::SeqCst) == 1) => {}
        }
        let result = call(&fixture.host, "echo", json!({ "message": "still here" })).await.unwrap();
        assert_eq!(result.is_error, Some(false));
        // The cancelled handler does not take the permit.
        let orchestrator = fixture.orchestrator.clone();
        wait_until(|| orchestrator.metrics().iter().any(|tool| tool.tool == "echo")).await;
        fixture.permits.add_permits(1);
        assert_eq!(fixture.permits.available_permits(), 1);
    }
}

#[tokio::test]
async fn an_approved_call_runs_once() {
    for revision in REVISIONS {
        let fixture = fixture(revision, Some(ElicitationAction::Accept)).await;
        let result =
            call(&fixture.host, "send", json!({ "to": "mira", "password": "geheim" })).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["to"], "mira", "{revision:?}");
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
        let elicitations = fixture.test_host.elicitations.lock().unwrap().clone();
        assert_eq!(elicitations.len(), 1);
        assert!(
            elicitations[0].starts_with("Send to mira?") && elicitations[0].contains("Arguments"),
            "{elicitations:?}"
        );
        assert!(!elicitations[0].contains("geheim"), "{elicitations:?}");
    }
}

#[tokio::test]
async fn a_rejected_or_dismissed_call_does_not_run() {
    for revision in REVISIONS {
        for no in [ElicitationAction::Decline, ElicitationAction::Cancel] {
            let fixture = fixture(revision, Some(no)).await;
            let result = call(&fixture.host, "send", json!({ "to": "mira" })).await.unwrap();
            let failure = text(&result);
            assert_eq!((result.is_error, &failure["type"]), (Some(true), &json!("PERMANENT")), "{failure}");
            assert!(failure["error"].as_str().unwrap().contains("declined"), "{failure}");
            assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
            assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap().len(), 0);
        }
    }
}

#[tokio::test]
async fn a_host_without_elicitation_gets_the_failure_without_the_token() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let result = call(&fixture.host, "send", json!({ "to": "mira", "approved": true })).await.unwrap();
        assert_eq!(text(&result)["type"], "VALIDATION");
        let result = call(&fixture.host, "send", json!({ "to": "mira" })).await.unwrap();
        let failure = text(&result);
        assert_eq!(failure["type"], "CONFIRMATION_REQUIRED", "{failure}");
        let whole = serde_json::to_string(&result).unwrap();
        assert!(!whole.contains("confirmation_token"), "{whole}");
        assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap().len(), 1);
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_request_state_is_valid_for_its_own_call_and_once() {
    let fixture = fixture(Revision::Stateless, Some(ElicitationAction::Accept)).await;
    let first = params("send", json!({ "to": "mira" }));
    let CallToolResponse::InputRequired(required) = fixture.host.call_tool_once(first.clone()).await.unwrap()
    else {
        panic!("the call needs confirmation")
    };
    let state = required.request_state.unwrap();
    let yes = [("confirmation".to_owned(), json!({ "action": "accept" }))];
    let again = |params: rmcp::model::CallToolRequestParams, state: String| {
        params.with_input_responses(yes.clone().into()).with_request_state(state)
    };
    let other = again(params("send", json!({ "to": "eve" })), state.clone());
    let forged = again(first.clone(), format!("{state}0"));
    let unknown = again(first.clone(), "conf_0.0".to_owned());
    for wrong in [other, forged, unknown] {
        let error = fixture.host.call_tool_once(wrong).await.unwrap_err().to_string();
        assert!(error.contains("requestState"), "{error}");
    }
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    // Without an answer the confirmation request remains, with a new token.
    let unanswered = first.clone().with_request_state(state.clone());
    let CallToolResponse::InputRequired(required) = fixture.host.call_tool_once(unanswered).await.unwrap()
    else {
        panic!("the call still needs confirmation")
    };
    assert!(fixture.host.call_tool_once(again(first.clone(), state)).await.is_err());
    let state = required.request_state.unwrap();
    for _ in 0..2 {
        // The second time it is answered from the record.
        let answer = fixture.host.call_tool_once(again(first.clone(), state.clone())).await.unwrap();
        let CallToolResponse::Complete(result) = answer else { panic!("the call is approved") };
        assert_eq!(result.structured_content.unwrap()["run"], 1);
    }
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_resent_named_call_is_answered_from_the_record() {
    let fixture = fixture(Revision::Session, None).await;
    let mut named = params("write", json!({}));
    let meta = json!({ "toolwright/executionId": "invoice-7" });
    named.meta = Some(meta.as_object().unwrap().clone().into());
    for _ in 0..2 {
        let result = fixture.host.call_tool(named.clone()).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["run"], 1);
    }
    call(&fixture.host, "write", json!({})).await.unwrap();
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn retrieval_calls_spend_the_budget_of_a_turn_which_the_host_may_mark() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        for at in 0..7 {
            let result = call(&fixture.host, "look", json!({})).await.unwrap();
            assert_eq!(result.is_error, Some(at >= 5), "{revision:?} {at}");
            assert_eq!(text(&result)["type"] == "BUDGET_EXCEEDED", at >= 5);
        }
        for (marker, calls) in [(json!("a"), 5), (json!(2), 5)] {
            let mut marked = params("look", json!({}));
            marked.meta = Some(json!({ "toolwright/turn": marker }).as_object().unwrap().clone().into());
            for at in 0..=calls {
                let result = fixture.host.call_tool(marked.clone()).await.unwrap();
                assert_eq!(result.is_error, Some(at >= calls), "{revision:?} {marker} {at}");
            }
        }
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 15, "equal calls of a turn are not replayed");
    }
}

#[tokio::test]
async fn documentation_prompts_and_completions_are_available() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let resources = fixture.host.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 5);
        assert_eq!(resources[0].uri, "tool://echo/doc");
        let missing = ReadResourceRequestParams::new("tool://nothing/doc");
        assert!(fixture.host.read_resource(missing).await.is_err());
        fixture.host.read_resource(ReadResourceRequestParams::new("tool://echo/doc")).await.unwrap();
        let prompts = fixture.host.list_all_prompts().await.unwrap();
        assert_eq!(prompts.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["text", "voice"]);
        let prompt = fixture.host.get_prompt(GetPromptRequestParams::new("text")).await.unwrap();
        let prompt = serde_json::to_value(&prompt.messages[0]).unwrap()["content"]["text"].to_string();
        assert!(prompt.contains("Be kind.") && prompt.contains("**echo** (utility)"), "{prompt}");
        let error =
            fixture.host.get_prompt(GetPromptRequestParams::new("txt")).await.unwrap_err().to_string();
        assert!(error.contains("did you mean `text`"), "{error}");
        let request = CompleteRequestParams::new(
            Reference::for_resource("tool://{id}/doc"),
            ArgumentInfo::new("id", "re"),
        );
        assert_eq!(fixture.host.complete(request).await.unwrap().completion.values, ["read", "reg_describe"]);
    }
}

#[tokio::test]
async fn a_session_moves_to_a_newer_toolset_when_its_host_lists_again() {
    let fixture = fixture(Revision::Session, None).await;
    call(&fixture.host, "echo", json!({ "message": "before" })).await.unwrap();
    fixture.orchestrator.install(runtime_with_tools(3, "2.0.0"));
    wait_until(|| *fixture.test_host.list_changes.lock().unwrap() == 1).await;
    // The session keeps its toolset until its host has listed the new one.
    call(&fixture.host, "echo", json!({ "message": "still" })).await.unwrap();
    assert_eq!(fixture.host.list_all_tools().await.unwrap().len(), 4);
    assert!(call(&fixture.host, "echo", json!({ "message": "gone" })).await.is_err());
}

#[tokio::test]
async fn a_tool_is_not_described_without_its_role() {
    for revision in REVISIONS {
        let fixture = fixture(revision, None).await;
        let hidden = ReadResourceRequestParams::new("tool://staff_only/doc");
        assert!(fixture.host.read_resource(hidden).await.is_err(), "{revision:?}");
        let prompt = fixture.host.get_prompt(GetPromptRequestParams::new("text")).await.unwrap();
        assert!(!serde_json::to_string(&prompt).unwrap().contains("staff_only"), "{revision:?}");
        let failure =
            text(&call(&fixture.host, "reg_describe", json!({ "tool": "staff_only" })).await.unwrap());
        assert_eq!(failure["type"], "AUTH", "{failure}");
    }
}
