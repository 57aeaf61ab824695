//! One conversation through all transports.

use serde_json::{Value, json};
use toolwright_agent::{AgentOptions, FinishReason, Message, Model, Part, ToolChoice, TurnOutcome, Usage};
use toolwright_orchestrator::store::{Memory, Store};

use crate::scripted_model::{Reply, Request, ScriptedModel};
use crate::support::{Fixture, KEY, options, outcome, settings, text};
use crate::wire_forms::{self, PROVIDERS, Step, calls};

/// Three steps, with reasoning, parallel calls and a refusal, and a second turn.
fn script() -> Vec<Reply> {
    let search = calls([
        ("call_1", "kb_search", json!({ "query": "quiet" })),
        ("call_2", "kb_search", json!({ "query": "größer" })),
    ]);
    let first = Step { reasoning: Some("Let me look."), text: "I search.", ..search };
    let invented = calls([("call_3", "note_add", json!({ "txt": "B" }))]);
    vec![
        Reply::Step(first),
        Reply::Step(invented),
        Reply::Step(calls([("call_4", "note_add", json!({ "text": "Studio B" }))])),
        Reply::Step(wire_forms::text("Studio B is quiet [doc:quiet-room].")),
        Reply::Step(wire_forms::text("You are welcome – größte Freude.")),
    ]
}

/// The history without what differs by provider: data for the provider, and generated ids.
fn comparable(messages: Vec<Message>) -> Vec<Message> {
    let strip = |message: Message| match message {
        Message::Assistant(mut assistant) => {
            assistant.id = String::new();
            assistant.usage.cached_tokens = 0;
            for part in assistant.steps.iter_mut().flat_map(|step| &mut step.parts) {
                match part {
                    Part::Text { provider_data, .. } | Part::Reasoning { provider_data, .. } => {
                        *provider_data = None
                    }
                    Part::Tool(tool) => {
                        tool.provider_data = None;
                        if let Some(result) = &mut tool.result {
                            result.duration_ms = 0;
                        }
                    }
                    _ => {}
                }
            }
            Message::Assistant(assistant)
        }
        other => other,
    };
    messages.into_iter().map(strip).collect()
}

async fn converse(provider: &str) -> (Fixture, Vec<Message>, Vec<Request>) {
    let server = ScriptedModel::start(script()).await;
    let fixture = Fixture::new(&server, provider);
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Which studio is quiet?").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed, "{provider}");
    assert_eq!(text(&events), "I search.Studio B is quiet [doc:quiet-room].");
    let events = fixture.say(&session, "m2", "Thank you").await;
    assert_eq!(text(&events), "You are welcome – größte Freude.");
    let history = fixture.agent.history(&session).await.unwrap();
    (fixture, history, server.requests())
}

#[tokio::test]
async fn the_same_conversation_gives_the_same_calls_and_the_same_history_through_all_transports() {
    type Conversation = (Vec<(String, Value)>, Vec<Message>);
    let mut expected: Option<Conversation> = None;
    for provider in PROVIDERS {
        let (fixture, history, requests) = converse(provider).await;
        assert_eq!(requests.len(), 5);
        let mut runs = fixture.runs();
        runs.sort_by_key(|(_, args)| args.to_string());
        let history = comparable(history);
        match &expected {
            Some((calls, messages)) => {
                assert_eq!(&runs, calls, "{provider}");
                assert_eq!(&history, messages, "{provider}");
            }
            None => expected = Some((runs, history)),
        }
    }
    let (runs, history) = expected.unwrap();
    assert_eq!(runs.len(), 3);
    let Message::Assistant(reply) = &history[1] else { panic!("{history:?}") };
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 40,
            output_tokens: 20,
            cached_tokens: reply.usage.cached_tokens,
            ..Usage::default()
        }
    );
    assert_eq!(reply.steps[0].finish, Some(FinishReason::ToolCalls));
    let refused = reply.tools().nth(2).unwrap().result.as_ref().unwrap();
    assert_eq!(refused.content["type"], "VALIDATION");
    assert!(refused.content["error"].as_str().unwrap().contains("text"), "{}", refused.content);
}

#[tokio::test]
async fn prompts_and_declarations_are_the_same_bytes_in_every_request() {
    for provider in PROVIDERS {
        let (_, _, requests) = converse(provider).await;
        let stable = |request: &Request| {
            let body = &request.body;
            let system = match provider {
                "openai-responses" => &body["instructions"],
                "anthropic" => &body["system"],
                "gemini" => &body["systemInstruction"],
                _ => &body["messages"][0],
            };
            format!("{system}{}", body["tools"])
        };
        let first = stable(&requests[0]);
        assert!(first.contains("Be brief.") && first.contains("reg_describe"), "{provider}: {first}");
        assert!(requests.iter().all(|request| stable(request) == first), "{provider}");
        // Each request begins with the messages of the one before it, except for marks of the prompt cache.
        let messages = |request: &Request| {
            let body = &request.body;
            let list = [&body["messages"], &body["input"], &body["contents"]]
                .into_iter()
                .find(|list| list.is_array());
            list.unwrap().to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        for pair in requests.windows(2) {
            let (before, after) = (messages(&pair[0]), messages(&pair[1]));
            assert!(after.starts_with(before.trim_end_matches(']')), "{provider}:\n{before}\n{after}");
        }
    }
}

#[tokio::test]
async fn a_required_call_is_demanded_of_the_first_step_only() {
    for provider in PROVIDERS.into_iter().filter(|provider| *provider != "ollama") {
        let replies = [
            Reply::Step(calls([("call_1", "kb_search", json!({ "query": "quiet" }))])),
            Reply::Step(wire_forms::text("Studio B.")),
        ];
        let server = ScriptedModel::start(replies).await;
        let model = Model::remote(settings(&server, provider)).unwrap();
        let options = AgentOptions { tool_choice: ToolChoice::Required, ..options() };
        let fixture = Fixture::on(Store::Memory(Memory::default()), model, options);
        let session = fixture.session().await;
        assert_eq!(text(&fixture.say(&session, "m1", "Where is it quiet?").await), "Studio B.");
        let choices: Vec<Value> =
            server.requests().iter().map(|request| tool_choice(&request.body)).collect();
        let expected = match provider {
            "anthropic" => json!({ "type": "any" }),
            "gemini" => json!({ "functionCallingConfig": { "mode": "ANY" } }),
            _ => json!("required"),
        };
        assert_eq!(choices, [expected, Value::Null], "{provider}");
    }
}

fn tool_choice(body: &Value) -> Value {
    body.get("tool_choice").or_else(|| body.get("toolConfig")).cloned().unwrap_or_default()
}

#[tokio::test]
async fn reasoning_goes_back_to_its_provider_with_its_signature() {
    for (provider, path, expected) in [
        ("openai-responses", "/input/1/encrypted_content", json!("sealed")),
        (
            "anthropic",
            "/messages/1/content/0",
            json!({ "type": "thinking", "signature": "sealed", "thinking": "Let me look." }),
        ),
        ("gemini", "/contents/1/parts/1/thoughtSignature", json!("sealed")),
        ("ollama", "/messages/2/thinking", json!("Let me look.")),
    ] {
        let (_, history, requests) = converse(provider).await;
        for request in &requests[1..] {
            assert_eq!(request.body.pointer(path), Some(&expected), "{provider}: {:#}", request.body);
        }
        let Message::Assistant(reply) = &history[1] else { panic!() };
        assert!(matches!(&reply.steps[0].parts[0], Part::Reasoning { text, .. } if text == "Let me look."));
    }
}

#[tokio::test]
async fn each_provider_gets_the_key_in_its_own_header() {
    for provider in PROVIDERS {
        let (_, _, requests) = converse(provider).await;
        let head = requests[0].head.to_lowercase();
        let header = match provider {
            "gemini" => format!("x-goog-api-key: {KEY}"),
            _ => format!("authorization: bearer {KEY}"),
        };
        assert!(head.contains(&header), "{provider}: {head}");
        assert_eq!(requests[0].provider, provider);
    }
}
