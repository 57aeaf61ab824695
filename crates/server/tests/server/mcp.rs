//! MCP over pipes, in both eras: what a host lists, calls, reads, and what a person is asked.

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

use super::mcp_host::{ERAS, Era, Host, Person, call, over_pipe, params, text};
use super::support::{orchestrator, tool, until};

struct Bench {
    host: Host,
    person: Person,
    orchestrator: Orchestrator,
    runs: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

async fn bench(era: Era, says: Option<ElicitationAction>) -> Bench {
    let (runs, open) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let orchestrator = orchestrator(&runs, &open);
    let person = Person::who_says(says);
    let host = over_pipe(orchestrator.clone(), era, person.clone()).await;
    Bench { host, person, orchestrator, runs, open }
}

/// A toolset of so many tools.
fn many(count: usize, version: &str) -> Runtime {
    let tools = (0..count).map(|at| tool(&format!("tool_{at:03}"), &json!({ "version": version }))).collect();
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("many.json"), tools);
    assert_eq!(errors, []);
    Runtime::builder(Arc::new(toolset), ".").build()
}

#[tokio::test]
async fn tools_are_listed_with_hints_and_only_those_that_may_be_used() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let tools = bench.host.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        // `of_staff` needs a role that the person at the pipe does not have.
        assert_eq!(names, ["echo", "look", "read", "write", "send", "reg_describe"], "{era:?}");
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
async fn a_long_list_comes_in_pages_and_a_foreign_cursor_is_refused() {
    let orchestrator = Orchestrator::builder(many(250, "1.0.0")).build().unwrap();
    let host = over_pipe(orchestrator, Era::Stateless, Person::who_says(None)).await;
    let page = host.list_tools(None).await.unwrap();
    assert_eq!(page.tools.len(), 100);
    let next = PaginatedRequestParams::default().with_cursor(page.next_cursor);
    assert_eq!(host.list_tools(Some(next)).await.unwrap().tools[0].name, "tool_100");
    assert_eq!(host.list_all_tools().await.unwrap().len(), 251);
    let foreign = PaginatedRequestParams::default().with_cursor(Some("7@9.9.9".to_owned()));
    let error = host.list_tools(Some(foreign)).await.unwrap_err().to_string();
    assert!(error.contains("begin again"), "{error}");
}

#[tokio::test]
async fn a_call_answers_with_text_and_structured_content() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let result = call(&bench.host, "echo", json!({ "message": "hi" })).await.unwrap();
        let data = json!({ "run": 1, "args": { "message": "hi", "times": 1 } });
        assert_eq!((result.is_error, result.structured_content.as_ref()), (Some(false), Some(&data)));
        assert_eq!(text(&result), data);
        let meta = Value::Object(result.meta.unwrap().0);
        assert_eq!(meta["toolwright/meta"]["toolVersion"], "1.0.0");
    }
}

#[tokio::test]
async fn wrong_arguments_are_an_error_that_the_model_reads_and_an_unknown_tool_one_of_the_protocol() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let result = call(&bench.host, "echo", json!({ "mesage": "hi" })).await.unwrap();
        let told = text(&result);
        assert_eq!((result.is_error, &told["type"]), (Some(true), &json!("VALIDATION")), "{told}");
        assert!(told["suggestion"].is_string());
        let error = call(&bench.host, "eco", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("There is no tool `eco`"), "{error}");
        assert_eq!(bench.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn progress_reaches_the_host_and_never_goes_back() {
    for era in ERAS {
        let bench = bench(era, None).await;
        call(&bench.host, "read", json!({ "progress": [0.25, 0.5, 0.4, 1.0] })).await.unwrap();
        until(|| bench.person.progress.lock().unwrap().len() == 3).await;
        assert_eq!(*bench.person.progress.lock().unwrap(), [0.25, 0.5, 1.0], "{era:?}");
    }
}

#[tokio::test]
async fn a_cancelled_read_ends_and_the_session_goes_on() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let waiting = bench.host.call_tool_once(params("read", json!({ "wait": true })));
        tokio::select! {
            _ = waiting => panic!("it waits"),
            () = until(|| bench.runs.load(Ordering::SeqCst) == 1) => {}
        }
        let result = call(&bench.host, "echo", json!({ "message": "still here" })).await.unwrap();
        assert_eq!(result.is_error, Some(false));
        // Whoever waited at the gate has gone: opening it lets nobody through.
        let orchestrator = bench.orchestrator.clone();
        until(|| orchestrator.metrics().iter().any(|tool| tool.tool == "echo")).await;
        bench.open.add_permits(1);
        assert_eq!(bench.open.available_permits(), 1);
    }
}

#[tokio::test]
async fn a_person_is_asked_and_a_yes_runs_the_call_once() {
    for era in ERAS {
        let bench = bench(era, Some(ElicitationAction::Accept)).await;
        let result = call(&bench.host, "send", json!({ "to": "mira", "password": "geheim" })).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["to"], "mira", "{era:?}");
        assert_eq!(bench.runs.load(Ordering::SeqCst), 1);
        let asked = bench.person.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].starts_with("Send to mira?") && asked[0].contains("Arguments"), "{asked:?}");
        assert!(!asked[0].contains("geheim"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_no_or_a_closed_question_runs_nothing() {
    for era in ERAS {
        for no in [ElicitationAction::Decline, ElicitationAction::Cancel] {
            let bench = bench(era, Some(no)).await;
            let result = call(&bench.host, "send", json!({ "to": "mira" })).await.unwrap();
            let told = text(&result);
            assert_eq!((result.is_error, &told["type"]), (Some(true), &json!("PERMANENT")), "{told}");
            assert!(told["error"].as_str().unwrap().contains("declined"), "{told}");
            assert_eq!(bench.runs.load(Ordering::SeqCst), 0);
            assert_eq!(bench.orchestrator.pending(None).await.unwrap().len(), 0);
        }
    }
}

#[tokio::test]
async fn a_host_that_cannot_ask_gets_the_refusal_without_the_token() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let result = call(&bench.host, "send", json!({ "to": "mira", "approved": true })).await.unwrap();
        assert_eq!(text(&result)["type"], "VALIDATION");
        let result = call(&bench.host, "send", json!({ "to": "mira" })).await.unwrap();
        let told = text(&result);
        assert_eq!(told["type"], "CONFIRMATION_REQUIRED", "{told}");
        let whole = serde_json::to_string(&result).unwrap();
        assert!(!whole.contains("confirmation_token"), "{whole}");
        assert_eq!(bench.orchestrator.pending(None).await.unwrap().len(), 1);
        assert_eq!(bench.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_request_state_is_good_for_its_own_call_and_once() {
    let bench = bench(Era::Stateless, Some(ElicitationAction::Accept)).await;
    let first = params("send", json!({ "to": "mira" }));
    let CallToolResponse::InputRequired(asked) = bench.host.call_tool_once(first.clone()).await.unwrap()
    else {
        panic!("it asks")
    };
    let state = asked.request_state.unwrap();
    let yes = [("confirmation".to_owned(), json!({ "action": "accept" }))];
    let again = |params: rmcp::model::CallToolRequestParams, state: String| {
        params.with_input_responses(yes.clone().into()).with_request_state(state)
    };
    let other = again(params("send", json!({ "to": "eve" })), state.clone());
    let forged = again(first.clone(), format!("{state}0"));
    let unknown = again(first.clone(), "conf_0.0".to_owned());
    for wrong in [other, forged, unknown] {
        let error = bench.host.call_tool_once(wrong).await.unwrap_err().to_string();
        assert!(error.contains("requestState"), "{error}");
    }
    assert_eq!(bench.runs.load(Ordering::SeqCst), 0);
    // Without an answer the question stands, under a new secret.
    let unanswered = first.clone().with_request_state(state.clone());
    let CallToolResponse::InputRequired(asked) = bench.host.call_tool_once(unanswered).await.unwrap() else {
        panic!("it asks again")
    };
    assert!(bench.host.call_tool_once(again(first.clone(), state)).await.is_err());
    let state = asked.request_state.unwrap();
    for _ in 0..2 {
        // The second time it is answered from the record.
        let answer = bench.host.call_tool_once(again(first.clone(), state.clone())).await.unwrap();
        let CallToolResponse::Complete(result) = answer else { panic!("it is approved") };
        assert_eq!(result.structured_content.unwrap()["run"], 1);
    }
    assert_eq!(bench.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_named_call_that_comes_again_is_answered_from_the_record() {
    let bench = bench(Era::Session, None).await;
    let mut named = params("write", json!({}));
    let meta = json!({ "toolwright/executionId": "invoice-7" });
    named.meta = Some(meta.as_object().unwrap().clone().into());
    for _ in 0..2 {
        let result = bench.host.call_tool(named.clone()).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["run"], 1);
    }
    call(&bench.host, "write", json!({})).await.unwrap();
    assert_eq!(bench.runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn every_retrieval_is_a_turn_since_mcp_tells_none() {
    for era in ERAS {
        let bench = bench(era, None).await;
        for _ in 0..8 {
            assert_eq!(call(&bench.host, "look", json!({})).await.unwrap().is_error, Some(false), "{era:?}");
        }
    }
}

#[tokio::test]
async fn documents_prompts_and_completions_are_served() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let resources = bench.host.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 5);
        assert_eq!(resources[0].uri, "tool://echo/doc");
        let missing = ReadResourceRequestParams::new("tool://nothing/doc");
        assert!(bench.host.read_resource(missing).await.is_err());
        bench.host.read_resource(ReadResourceRequestParams::new("tool://echo/doc")).await.unwrap();
        let prompts = bench.host.list_all_prompts().await.unwrap();
        assert_eq!(prompts.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["text", "voice"]);
        let prompt = bench.host.get_prompt(GetPromptRequestParams::new("text")).await.unwrap();
        let prompt = serde_json::to_value(&prompt.messages[0]).unwrap()["content"]["text"].to_string();
        assert!(prompt.contains("Be kind.") && prompt.contains("**echo** (utility)"), "{prompt}");
        let error = bench.host.get_prompt(GetPromptRequestParams::new("txt")).await.unwrap_err().to_string();
        assert!(error.contains("did you mean `text`"), "{error}");
        let asked = CompleteRequestParams::new(
            Reference::for_resource("tool://{id}/doc"),
            ArgumentInfo::new("id", "re"),
        );
        assert_eq!(bench.host.complete(asked).await.unwrap().completion.values, ["read", "reg_describe"]);
    }
}

#[tokio::test]
async fn a_newer_toolset_is_told_and_taken_on_when_the_host_lists_again() {
    let bench = bench(Era::Session, None).await;
    call(&bench.host, "echo", json!({ "message": "before" })).await.unwrap();
    bench.orchestrator.install(many(3, "2.0.0"));
    until(|| *bench.person.changes.lock().unwrap() == 1).await;
    // The session keeps its toolset until its host has seen the new one.
    call(&bench.host, "echo", json!({ "message": "still" })).await.unwrap();
    assert_eq!(bench.host.list_all_tools().await.unwrap().len(), 4);
    assert!(call(&bench.host, "echo", json!({ "message": "gone" })).await.is_err());
}

#[tokio::test]
async fn what_a_role_is_needed_for_is_not_described_without_it() {
    for era in ERAS {
        let bench = bench(era, None).await;
        let hidden = ReadResourceRequestParams::new("tool://of_staff/doc");
        assert!(bench.host.read_resource(hidden).await.is_err(), "{era:?}");
        let prompt = bench.host.get_prompt(GetPromptRequestParams::new("text")).await.unwrap();
        assert!(!serde_json::to_string(&prompt).unwrap().contains("of_staff"), "{era:?}");
        let told = text(&call(&bench.host, "reg_describe", json!({ "tool": "of_staff" })).await.unwrap());
        assert_eq!(told["type"], "AUTH", "{told}");
    }
}
