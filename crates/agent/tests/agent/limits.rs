//! Models that misbehave: endless loops, invented tools and parameters, repeated ids, huge arguments.

use serde_json::json;
use toolwright_agent::{
    AgentOptions, ClientResult, ClientTool, Error, Model, ToolAccess, TurnInput, TurnOutcome, TurnRequest,
    UserMessage,
};
use toolwright_orchestrator::store::{Memory, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, options, outcome, results, settings, text};
use crate::wire_forms::{self, Call, PROVIDERS, Step, calls};

#[tokio::test]
async fn a_looping_model_is_stopped_by_the_budget_and_by_the_step_limit() {
    for provider in PROVIDERS {
        let server = ScriptedModel::repeating(Reply::Step(calls([(
            "same",
            "kb_search",
            json!({ "query": "again" }),
        )])))
        .await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let events = fixture.say(&session, "m1", "Go").await;
        assert_eq!(outcome(&events), TurnOutcome::StepLimit { max_steps: 6 }, "{provider}");
        assert_eq!(server.requests().len(), 6);
        // Five retrievals are allowed in a turn; an id that is repeated is a new call.
        assert_eq!(fixture.runs().len(), 5, "{provider}");
        let results = results(&events);
        assert_eq!(results.len(), 6);
        assert_eq!(results[5]["type"], "BUDGET_EXCEEDED");
        assert!(results[5]["suggestion"].is_string());
        // The next turn has a new budget.
        let events = fixture.say(&session, "m2", "Go on").await;
        assert_eq!(outcome(&events), TurnOutcome::StepLimit { max_steps: 6 });
        assert_eq!(fixture.runs().len(), 10);
    }
}

#[tokio::test]
async fn unknown_tools_empty_names_and_unreadable_arguments_are_answered() {
    for provider in PROVIDERS {
        let odd = Step {
            calls: vec![
                Call { id: "", name: "kb_serch", args: r#"{"query":"x"}"#.to_owned() },
                Call { id: "a b/ö", name: "", args: "{}".to_owned() },
                Call { id: "ok", name: "kb_search", args: r#"{"query": "#.to_owned() },
                // In a response of OpenAI Responses, items with the same `call_id` are one call.
                Call {
                    id: if provider == "openai-responses" { "ok2" } else { "ok" },
                    name: "kb_search",
                    args: r#"{"query":"x","depth":3}"#.to_owned(),
                },
            ],
            ..Step::default()
        };
        let server = ScriptedModel::start([Reply::Step(odd), Reply::Step(wire_forms::text("Done."))]).await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let events = fixture.say(&session, "m1", "Go").await;
        assert_eq!(outcome(&events), TurnOutcome::Completed, "{provider}");
        let reply = fixture.reply(&session).await;
        let types: Vec<_> =
            reply.tools().map(|tool| tool.result.as_ref().unwrap().content["type"].clone()).collect();
        assert_eq!(types, ["NOT_FOUND", "NOT_FOUND", "VALIDATION", "VALIDATION"], "{provider}");
        let invalid = reply.tools().nth(2).unwrap().result.clone().unwrap().content;
        assert_eq!(invalid["documentation"], "The tool kb_search.", "{provider}: {invalid}");
        assert_eq!(fixture.runs().len(), 0);
        // The ids that went back are unique and plain, which the scripted server has checked for every request.
        let ids: Vec<_> = reply.tools().map(|tool| tool.call.id.clone()).collect();
        assert_eq!(ids[2], "ok");
        assert!(
            ids.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')),
            "{ids:?}"
        );
    }
}

#[tokio::test]
async fn huge_arguments_and_very_many_calls_are_refused() {
    let huge =
        Call { id: "huge", name: "note_add", args: json!({ "text": "x".repeat(2 << 20) }).to_string() };
    let many =
        (0..70).map(|_| Call { id: "", name: "note_add", args: r#"{"text":"n"}"#.to_owned() }).collect();
    let server = ScriptedModel::start([
        Reply::Step(Step { calls: vec![huge], ..Step::default() }),
        Reply::Step(Step { calls: many, ..Step::default() }),
        Reply::Step(wire_forms::text("Done.")),
    ])
    .await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Go").await;
    assert_eq!(text(&events), "Done.");
    let results = results(&events);
    assert!(results[0]["error"].as_str().unwrap().contains("longer than"), "{}", results[0]);
    assert_eq!(results.iter().filter(|result| result["ok"] == true).count(), 64);
    assert_eq!(fixture.runs().len(), 64);
    let stored: usize =
        fixture.reply(&session).await.tools().map(|tool| tool.call.args.to_string().len()).sum();
    assert!(stored < 10_000, "{stored}");
}

#[tokio::test]
async fn secret_arguments_reach_the_tool_and_not_the_log() {
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "login", json!({ "password": "hunter2!" }))])),
        Reply::Step(wire_forms::text("Done.")),
    ])
    .await;
    let fixture = Fixture::new(&server, "anthropic");
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Log in").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    assert_eq!(fixture.runs(), [("login".to_owned(), json!({ "password": "hunter2!" }))]);
    assert!(!format!("{events:?}").contains("hunter2!"));
}

#[tokio::test]
async fn a_clients_own_tools_are_handed_back_and_not_run() {
    let server = ScriptedModel::start([
        Reply::Step(calls([
            ("c1", "get_weather", json!({ "city": "Oslo" })),
            ("c2", "kb_search", json!({ "query": "x" })),
        ])),
        Reply::Step(wire_forms::text("Five degrees.")),
    ])
    .await;
    let fixture = Fixture::new(&server, "openai-responses");
    let session = fixture.session().await;
    let weather = ClientTool {
        name: "get_weather".to_owned(),
        description: "The weather.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "city": { "type": "string" } } }),
    };
    let message = TurnInput::Message(UserMessage::text("m1", "How warm is it?"));
    let request = TurnRequest { client_tools: vec![weather.clone()], ..TurnRequest::new(&session, message) };
    let turn = fixture.agent.start(request).await.unwrap();
    let events = fixture.events(&session, turn.start).await;
    assert_eq!(outcome(&events), TurnOutcome::AwaitsClient);
    assert_eq!(fixture.runs().len(), 1);
    assert!(server.requests()[0].body["tools"].to_string().contains("get_weather"));
    let result = |id: &str| {
        let results = vec![ClientResult { call_id: id.to_owned(), content: json!("5 °C"), is_error: false }];
        TurnRequest {
            client_tools: vec![weather.clone()],
            ..TurnRequest::new(&session, TurnInput::ClientResults(results))
        }
    };
    for id in ["c2", "other"] {
        assert_eq!(fixture.agent.start(result(id)).await, Err(Error::UnknownClientCall(id.to_owned())));
    }
    let turn = fixture.agent.start(result("c1")).await.unwrap();
    let events = fixture.events(&session, turn.resumed_at).await;
    assert_eq!((text(&events).as_str(), outcome(&events)), ("Five degrees.", TurnOutcome::Completed));
    // The same results again change nothing.
    assert!(!fixture.agent.start(result("c1")).await.unwrap().is_new);
    let taken = ClientTool { name: "kb_search".to_owned(), ..weather };
    let message = TurnInput::Message(UserMessage::text("m2", "And now?"));
    let request = TurnRequest { client_tools: vec![taken], ..TurnRequest::new(&session, message) };
    assert_eq!(fixture.agent.start(request).await, Err(Error::ClientToolName("kb_search".to_owned())));
}

#[tokio::test]
async fn a_title_request_declares_no_tools() {
    for provider in PROVIDERS {
        let server = ScriptedModel::start([Reply::Step(wire_forms::text("{\"title\":\"Studios\"}"))]).await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let message = TurnInput::Message(UserMessage::text("t", "### Task: a title"));
        let request = TurnRequest { tools: ToolAccess::None, ..TurnRequest::new(&session, message) };
        let turn = fixture.agent.start(request).await.unwrap();
        fixture.events(&session, turn.start).await;
        assert!(server.requests()[0].body.get("tools").is_none(), "{provider}");
    }
}

#[tokio::test]
async fn a_call_in_a_request_without_tools_does_not_run() {
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "note_add", json!({ "text": "x" }))])),
        Reply::Step(wire_forms::text("A title")),
    ])
    .await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let message = TurnInput::Message(UserMessage::text("t", "### Task: a title"));
    let request = TurnRequest { tools: ToolAccess::None, ..TurnRequest::new(&session, message) };
    let turn = fixture.agent.start(request).await.unwrap();
    let events = fixture.events(&session, turn.start).await;
    assert_eq!(results(&events)[0]["error"], "This request has no tools.");
    assert_eq!(fixture.runs(), []);
}

#[tokio::test]
async fn secrets_in_arguments_that_cannot_be_read_are_not_in_the_log() {
    let cut = Step {
        calls: vec![Call { id: "c1", name: "login", args: r#"{"password":"hunter2!","#.to_owned() }],
        ..Step::default()
    };
    let server = ScriptedModel::start([Reply::Step(cut), Reply::Step(wire_forms::text("Done."))]).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Log in").await;
    assert_eq!(fixture.runs(), []);
    assert!(!format!("{events:?}").contains("hunter2!"), "{events:?}");
}

#[tokio::test]
async fn bad_messages_are_refused_with_a_reason() {
    let server = ScriptedModel::start([]).await;
    let fixture = Fixture::new(&server, "ollama");
    let session = fixture.session().await;
    let start = |session: &str, message: UserMessage| {
        let request = TurnRequest::message(session, message);
        async { fixture.agent.start(request).await.unwrap_err() }
    };
    assert_eq!(start("nope", UserMessage::text("m", "x")).await, Error::UnknownSession("nope".to_owned()));
    assert_eq!(start(&session, UserMessage::text("m", " \n")).await, Error::EmptyMessage);
    assert_eq!(start(&session, UserMessage::text("", "x")).await, Error::MessageId { limit: 256 });
    let large = start(&session, UserMessage::text("m", "x".repeat(10 << 20))).await;
    assert_eq!(large, Error::MessageTooLarge { bytes: 10 << 20, limit: 4 << 20 });
    fixture.orchestrator.end_session(&session).await.unwrap();
    assert_eq!(start(&session, UserMessage::text("m", "x")).await, Error::SessionEnded(session.clone()));
    assert!(fixture.agent.history(&session).await.unwrap().is_empty());
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn the_model_reads_the_results_of_its_last_calls_however_long_the_history_is() {
    let search = || Reply::Step(calls([("c", "kb_search", json!({ "query": "x" }))]));
    let server = ScriptedModel::start([search(), search(), Reply::Step(wire_forms::text("Studio B."))]).await;
    let model = Model::remote(settings(&server, "openai-chat")).unwrap();
    let options = AgentOptions { max_input_tokens: 1, ..options() };
    let fixture = Fixture::on(Store::Memory(Memory::default()), model, options);
    let session = fixture.session().await;
    assert_eq!(outcome(&fixture.say(&session, "m1", "Go").await), TurnOutcome::Completed);
    let last = server.requests()[2].body["messages"].to_string();
    assert_eq!(last.matches("Studio B is quiet").count(), 1, "{last}");
    assert_eq!(last.matches("was removed to save space").count(), 1, "{last}");
}
