//! The chat wires, against a scripted model: the AI SDK's UI message stream, OpenAI's APIs, AG-UI.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Semaphore;
use toolwright_agent::{Agent, AgentObserver, AgentOptions, Model, ModelSettings, Timeouts};
use toolwright_orchestrator::Orchestrator;
use toolwright_server::Options;
use toolwright_server::otlp::Exporter;

use super::client::{Client, Response};
use super::scripted_model::ScriptedModel;
use super::support::{TestServer, orchestrator_of, orchestrator_with, tool, wait_until};

/// A server whose agent uses the scripted model.
pub struct ChatServer {
    pub server: TestServer,
    pub model: ScriptedModel,
    pub client: Client,
}

impl ChatServer {
    pub async fn start() -> Self {
        Self::with(AgentOptions::default()).await
    }

    pub async fn with(options: AgentOptions) -> Self {
        Self::observed(options, None).await
    }

    pub async fn observed(options: AgentOptions, exporter: Option<Arc<Exporter>>) -> Self {
        let (runs, permits) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator_with(&runs, &permits, |builder| match &exporter {
            Some(exporter) => builder.observer(exporter.clone()),
            None => builder,
        });
        Self::on(ScriptedModel::start().await, orchestrator, (runs, permits), options, exporter).await
    }

    /// With two tools: `later` runs in the background, `send` asks for approval.
    pub async fn with_background_tool() -> Self {
        let (runs, permits) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let later = tool("later", &json!({ "execution": "background" }));
        let send = tool("send", &json!({ "requiresConfirmation": true }));
        let orchestrator = orchestrator_of(vec![later, send], &runs, &permits, |builder| builder);
        let model = ScriptedModel::start().await;
        Self::on(model, orchestrator, (runs, permits), AgentOptions::default(), None).await
    }

    /// Whose model cannot be reached.
    pub async fn without_model() -> Self {
        let (runs, permits) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator_with(&runs, &permits, |builder| builder);
        Self::on(ScriptedModel::unreachable(), orchestrator, (runs, permits), AgentOptions::default(), None)
            .await
    }

    async fn on(
        model: ScriptedModel,
        orchestrator: Orchestrator,
        (runs, permits): (Arc<AtomicUsize>, Arc<Semaphore>),
        options: AgentOptions,
        exporter: Option<Arc<Exporter>>,
    ) -> Self {
        let settings = ModelSettings {
            provider: "openai-chat".to_owned(),
            model: "scripted".to_owned(),
            base_url: Some(format!("http://{}/v1", model.address)),
            key: Some("model-key-secret".to_owned().into()),
            timeouts: Timeouts { retries: 0, ..Timeouts::default() },
        };
        let observer = exporter.map(|exporter| exporter as Arc<dyn AgentObserver>);
        let model_of_agent = Model::remote(settings).unwrap();
        let agent = Agent::with_observer(orchestrator.clone(), model_of_agent, options, observer);
        let change = |options: &mut Options| options.agent = Some(agent);
        let server = TestServer::set_up(orchestrator, runs, permits, change, None).await;
        let client = server.client.clone();
        Self { server, model, client }
    }

    /// Sends a message of the user.
    pub async fn say(&self, chat: &str, id: &str, text: &str) -> Response {
        self.client.post("/api/chat", message(chat, id, text)).await
    }
}

pub fn message(chat: &str, id: &str, text: &str) -> Value {
    let message = json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] });
    json!({ "id": chat, "trigger": "submit-message", "messages": [message] })
}

/// The parts of a stream; its last line must be `[DONE]`.
pub fn chunks(response: &Response) -> Vec<Value> {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let text = dechunked(response);
    assert!(text.trim_end().ends_with("data: [DONE]"), "{text}");
    data(&text)
}

pub fn data(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    lines.map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap()).collect()
}

/// The body without the sizes of its transfer chunks.
pub fn dechunked(response: &Response) -> String {
    if response.header("transfer-encoding") != Some("chunked") {
        return response.text().to_owned();
    }
    let (mut rest, mut text) = (response.body.as_slice(), Vec::new());
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return String::from_utf8(text).unwrap();
        }
        text.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

pub fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

pub fn of_kind<'a>(chunks: &'a [Value], kind: &str) -> &'a Value {
    chunks.iter().find(|chunk| chunk["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {chunks:?}"))
}

/// An assistant message that answers an approval, as the client sends it back.
pub fn answered(chat: &str, asked: &[Value], approved: bool) -> Value {
    let (input, request) = (of_kind(asked, "tool-input-available"), of_kind(asked, "tool-approval-request"));
    let part = json!({ "type": format!("tool-{}", input["toolName"].as_str().unwrap()), "toolCallId": input["toolCallId"],
        "state": "approval-responded", "input": input["input"],
        "approval": { "id": request["approvalId"], "approved": approved } });
    let message = json!({ "id": of_kind(asked, "start")["messageId"], "role": "assistant", "parts": [part] });
    json!({ "id": chat, "trigger": "submit-message", "messages": [message] })
}

#[tokio::test]
async fn a_message_is_answered_as_a_ui_message_stream_and_stays_in_the_history() {
    let server = ChatServer::start().await;
    let answer = server.say("c1", "m1", "call read {\"a\": 1}").await;
    assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), Some("v1"));
    let parts = chunks(&answer);
    let expected = [
        "start",
        "start-step",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ];
    assert_eq!(kinds(&parts), expected);
    assert_eq!(of_kind(&parts, "tool-output-available")["output"]["args"], json!({ "a": 1 }));
    assert_eq!(of_kind(&parts, "finish")["messageMetadata"]["usage"]["totalTokens"], 10);
    let history = server.client.get("/api/chat/c1/messages").await.expect(200);
    let states: Vec<_> =
        history["messages"][1]["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(states, ["step-start", "tool-read", "step-start", "text"]);
    assert_eq!(server.client.get("/api/chat/c1/stream").await.status, 204);
    let metrics = server.client.get("/metrics").await;
    for line in [
        "agent_turns_total{provider=\"openai-chat\",model=\"scripted\",outcome=\"completed\"} 1",
        "kind=\"input\"} 6",
    ] {
        assert!(metrics.text().contains(line), "no {line} in {}", metrics.text());
    }
    // Sent again, the same message runs nothing.
    let again = chunks(&server.say("c1", "m1", "call read {\"a\": 1}").await);
    assert_eq!((kinds(&again), server.server.runs(), server.model.requests()), (expected.to_vec(), 1, 2));
}

#[tokio::test]
async fn an_approval_runs_the_call_once_and_only_as_it_was_asked() {
    let server = ChatServer::start().await;
    let asked = chunks(&server.say("c1", "m1", "call send {\"to\": \"mira\"}").await);
    let request = of_kind(&asked, "tool-approval-request");
    assert_eq!(request["approvalDescriptor"]["preview"], "Send to mira?");
    assert!(!serde_json::to_string(&asked).unwrap().contains("token"), "{asked:?}");
    assert_eq!(of_kind(&asked, "finish")["finishReason"], "tool-calls");
    // A changed input, another call, another chat: nothing runs.
    let mut forged = answered("c1", &asked, true);
    forged["messages"][0]["parts"][0]["input"]["to"] = "eve".into();
    let refused = server.client.post("/api/chat", forged).await;
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("about another call") && !refused.text().contains("eve"), "{refused:?}");
    assert_eq!(server.client.post("/api/chat", answered("c2", &asked, true)).await.status, 409);
    assert_eq!(server.server.runs(), 0);
    let approved = chunks(&server.client.post("/api/chat", answered("c1", &asked, true)).await);
    assert_eq!(of_kind(&approved, "start"), of_kind(&asked, "start"));
    assert_eq!(of_kind(&approved, "tool-approval-response")["approved"], true);
    assert_eq!(of_kind(&approved, "tool-output-available")["output"]["run"], 1);
    // The same answer again is answered from the log; the opposite one is refused.
    let again = chunks(&server.client.post("/api/chat", answered("c1", &asked, true)).await);
    assert_eq!((again, server.server.runs()), (approved, 1));
    assert_eq!(server.client.post("/api/chat", answered("c1", &asked, false)).await.status, 409);
}

#[tokio::test]
async fn an_approval_with_edited_arguments_runs_them_if_they_are_valid() {
    let server = ChatServer::start().await;
    let asked = chunks(&server.say("c1", "m1", "call send {\"to\": \"mira\"}").await);
    let mut edited = answered("c1", &asked, true);
    edited["messages"][0]["parts"][0]["approval"]["args"] = json!({ "to": 7 });
    let refused = server.client.post("/api/chat", edited.clone()).await;
    assert_eq!((refused.status, server.server.runs()), (400, 0), "{refused:?}");
    assert!(refused.text().contains("/to must be string"), "{refused:?}");
    edited["messages"][0]["parts"][0]["approval"]["args"] = json!({ "to": "jon" });
    let approved = chunks(&server.client.post("/api/chat", edited).await);
    let output = of_kind(&approved, "tool-output-available");
    assert_eq!((&output["output"]["args"], server.server.runs()), (&json!({ "to": "jon" }), 1));
    assert!(output["durationMs"].is_u64(), "{output}");
}

#[tokio::test]
async fn a_client_that_left_can_resume_and_stop() {
    let server = ChatServer::start().await;
    let body = message("c1", "m1", "wait").to_string();
    let mut lines = BufReader::new(server.client.send("POST", "/api/chat", &body).await).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("begun") {}
    drop(lines);
    // Another message has to wait.
    let busy = server.say("c1", "m2", "say hi").await;
    assert_eq!(busy.status, 409);
    assert!(busy.text().contains("answering another message"), "{busy:?}");
    let resumed = server.client.send("GET", "/api/chat/c1/stream", "").await;
    let mut lines = BufReader::new(resumed).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("begun") {}
    assert_eq!(server.client.post("/api/chat/c1/stop", json!({ "activeStreamId": "old" })).await.status, 204);
    assert_eq!(server.client.post("/api/chat/c1/stop", json!({})).await.status, 204);
    let mut rest = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        rest += &line;
    }
    assert!(rest.contains(r#""type":"text-end""#) && rest.contains(r#""type":"abort""#), "{rest}");
    assert_eq!(server.client.get("/api/chat/c1/stream").await.status, 204);
    let history = server.client.get("/api/chat/c1/messages").await.expect(200).to_string();
    assert!(history.contains("begun") && !history.contains("ended"), "{history}");
    assert_eq!(of_kind(&chunks(&server.say("c1", "m2", "say hi").await), "text-delta")["delta"], "hi");
}

#[tokio::test]
async fn a_turn_that_nobody_listens_to_ends_after_the_grace_time_and_its_write_is_recorded() {
    let options = AgentOptions { grace: Duration::from_millis(50), ..AgentOptions::default() };
    let server = ChatServer::with(options).await;
    let text = "call write {\"wait\": true}";
    let stream = server.client.send("POST", "/api/chat", &message("c1", "m1", text).to_string()).await;
    wait_until(|| server.server.running_handlers() == 1).await;
    drop(stream);
    // The write finishes, and is recorded; the model is not asked again.
    tokio::time::timeout(Duration::from_secs(30), async {
        while server.client.get("/api/chat/c1/messages").await.expect(200)["messages"][1]["parts"].is_null() {
        }
    })
    .await
    .unwrap();
    server.server.permits.add_permits(1);
    tokio::time::timeout(Duration::from_secs(30), async {
        while server.client.get("/api/chat/c1/stream").await.status != 204 {}
    })
    .await
    .unwrap();
    let history = server.client.get("/api/chat/c1/messages").await.expect(200).to_string();
    assert!(history.contains("output-available"), "{history}");
    assert_eq!(server.server.runs(), 1);
    // The client sends the turn again: the write does not run again.
    server.say("c1", "m1", text).await;
    assert_eq!(server.server.runs(), 1);
}

#[tokio::test]
async fn a_chat_belongs_to_its_user() {
    let server = ChatServer::start().await;
    let (mira, ivo) = (server.server.client_with_key("mira", &[]), server.server.client_with_key("ivo", &[]));
    let asked = chunks(&mira.post("/api/chat", message("c1", "m1", "call send {\"to\": \"a\"}")).await);
    assert_eq!(ivo.get("/api/chat/c1/messages").await.status, 404);
    assert_eq!(ivo.get("/api/chat/c1/stream").await.status, 204);
    assert_eq!(ivo.post("/api/chat", answered("c1", &asked, true)).await.status, 409);
    let own = chunks(&ivo.post("/api/chat", message("c1", "m1", "say mine")).await);
    assert_eq!(of_kind(&own, "text-delta")["delta"], "mine");
    assert_eq!(server.server.runs(), 0);
    let wrong = server.client.with("authorization", "Bearer wrong").get("/api/chat/c1/messages").await;
    assert_eq!((wrong.status, wrong.header("content-type")), (401, Some("text/plain; charset=utf-8")));
}

#[tokio::test]
async fn bad_requests_of_chat_clients_say_what_is_wrong() {
    let server = ChatServer::start().await;
    let part =
        |part: Value| json!({ "id": "c1", "messages": [{ "id": "m1", "role": "user", "parts": [part] }] });
    let cases = [
        (json!({ "messages": [] }), 400, "`messages` is empty"),
        (json!({ "messages": [{ "id": "m", "role": "user", "parts": [] }] }), 400, "`id` is missing"),
        (json!({ "id": "a b", "messages": [{ "id": "m", "role": "user", "parts": [] }] }), 400, "printable"),
        (
            json!({ "id": "c1", "messages": [{ "id": "m", "role": "user", "parts": [] }] }),
            400,
            "message is empty",
        ),
        (
            json!({ "id": "c1", "messages": [{ "id": "m", "role": "system", "parts": [] }] }),
            400,
            "role `user`",
        ),
        (
            json!({ "id": "c1", "messages": [{ "id": "m", "role": "assistant", "parts": [] }] }),
            400,
            "no approval",
        ),
        (part(json!({ "type": "data-weather", "data": 1 })), 400, "`data-weather`"),
        (
            part(json!({ "type": "file", "mediaType": "application/pdf", "url": "data:x" })),
            400,
            "Only pictures",
        ),
        (part(json!({ "type": "file", "mediaType": "image/png", "url": "http://x/a.png" })), 400, "`https:`"),
    ];
    for (body, status, expected) in cases {
        let response = server.client.post("/api/chat", body).await;
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.text().contains(expected), "no {expected:?} in {response:?}");
    }
    let large = "x".repeat(5 << 20);
    let refused = server.say("c1", "m1", &large).await;
    assert_eq!(refused.status, 413);
    assert!(refused.text().contains("at most 4194304 are accepted"), "{}", refused.text());
    let larger = server.say("c1", "m1", &large.repeat(2)).await;
    let text =
        "The request body is larger than 8388608 bytes: send less, or raise `[server] max_chat_body_kb`.";
    assert_eq!((larger.status, larger.text()), (413, text));
    assert_eq!(server.client.get("/api/chat/unknown/messages").await.status, 404);
    assert_eq!(server.model.requests(), 0);
}

#[tokio::test]
async fn a_model_that_fails_is_reported_without_key_and_provider_text() {
    let server = ChatServer::start().await;
    let ui = dechunked(&server.say("c1", "m1", "fail 401").await);
    assert_eq!(kinds(&data(&ui)).last(), Some(&"error"));
    let chat = json!({ "model": "toolwright", "messages": [{ "role": "user", "content": "fail 401" }] });
    let completion = server.client.post("/v1/chat/completions", chat).await;
    let streamed = json!({ "model": "toolwright", "input": "fail 401", "stream": true });
    let response = server.client.post("/v1/responses", streamed).await;
    let run = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "u", "role": "user", "content": "fail 401" }] });
    let agui = dechunked(&server.client.post("/api/agui", run).await);
    assert_eq!((completion.status, response.status), (502, 502));
    assert_eq!(completion.json()["error"]["code"], "authentication");
    assert!(agui.contains("RUN_ERROR"), "{agui}");
    for text in [&ui, completion.text(), response.text(), &agui] {
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("does not accept the key"), "{text}");
    }
    // The failed turn goes on when its message is sent again.
    let again = dechunked(&server.say("c1", "m1", "fail 401").await);
    assert_eq!(kinds(&data(&again)).last(), Some(&"error"));
}

#[tokio::test]
async fn openai_clients_get_calls_with_outputs_and_answer_approvals() {
    let server = ChatServer::start().await;
    let create = |body: Value| {
        let mut whole = json!({ "model": "toolwright" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let client = server.client.clone();
        async move { client.post("/v1/responses", whole).await }
    };
    let read = create(json!({ "input": "call read {}" })).await.expect(200);
    let items: Vec<_> = read["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(items, ["function_call", "function_call_output", "message"]);
    let id = read["id"].as_str().unwrap();
    let stored = server.client.get(&format!("/v1/responses/{id}")).await.expect(200);
    assert_eq!(stored["output"], read["output"]);
    let asked =
        create(json!({ "input": "call send {\"to\": \"a\"}", "previous_response_id": id })).await.expect(200);
    let request = &asked["output"][0];
    assert_eq!((&request["type"], &request["name"]), (&json!("mcp_approval_request"), &json!("send")));
    let answer = |id: &Value, previous: &Value| {
        json!({ "previous_response_id": previous,
            "input": [{ "type": "mcp_approval_response", "approval_request_id": id, "approve": true }] })
    };
    let forged = create(answer(&json!("mcpr_conf_1"), &asked["id"])).await;
    assert_eq!((forged.status, forged.json()["error"]["code"].as_str()), (409, Some("approval_refused")));
    let approved = create(answer(&request["id"], &asked["id"])).await.expect(200);
    let again = create(answer(&request["id"], &asked["id"])).await.expect(200);
    assert_eq!((&approved["id"], &approved["output"]), (&again["id"], &again["output"]));
    assert_eq!(server.server.runs(), 2);
    // An earlier response than the last one begins a branch.
    let branch = create(json!({ "input": "say branch", "previous_response_id": id })).await.expect(200);
    let longer =
        create(json!({ "input": "say longer", "previous_response_id": branch["id"] })).await.expect(200);
    let session = |id: &Value| id.as_str().unwrap().rsplit_once('_').unwrap().0.to_owned();
    assert_ne!(session(&branch["id"]), session(&read["id"]));
    assert_eq!(session(&longer["id"]), session(&branch["id"]));
    let stored = server.client.get(&format!("/v1/responses/{id}")).await.expect(200);
    assert_eq!(stored["output"], read["output"]);
    let branch_session = session(&longer["id"]).replace("resp_", "");
    let history = server.client.get(&format!("/api/chat/{branch_session}/messages")).await.expect(200);
    let texts: Vec<_> =
        history["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "user").collect();
    assert_eq!(texts.len(), 3, "{history}");
    let missing = create(json!({ "input": "say a", "previous_response_id": "resp_missing" })).await;
    assert_eq!(missing.json()["error"]["code"], "previous_response_not_found");
}

#[tokio::test]
async fn tools_of_the_client_are_handed_back() {
    let server = ChatServer::start().await;
    let complete = |body: Value| {
        let client = server.client.clone();
        async move { client.post("/v1/chat/completions", body).await }
    };
    let tools = json!([{ "type": "function", "function": { "name": "own_tool", "parameters": { "type": "object" } } }]);
    let messages = json!([{ "role": "user", "content": "call own_tool {\"x\": 1}" }]);
    let called =
        complete(json!({ "model": "toolwright", "messages": messages, "tools": tools })).await.expect(200);
    let choice = &called["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({ "name": "own_tool", "arguments": "{\"x\":1}" }));
    let messages = json!([messages[0], choice["message"], { "role": "tool", "tool_call_id": call["id"], "content": "42" }]);
    let continued =
        complete(json!({ "model": "toolwright", "messages": messages, "tools": tools })).await.expect(200);
    assert!(continued["choices"][0]["message"]["content"].as_str().unwrap().contains("42"), "{continued}");
    let taken = json!([{ "type": "function", "function": { "name": "read" } }]);
    let refused = complete(json!({ "model": "toolwright", "messages": [{ "role": "user", "content": "say a" }], "tools": taken })).await;
    assert_eq!(refused.json()["error"]["code"], "tool_name_taken");
    assert_eq!(server.server.runs(), 0);
}

#[tokio::test]
async fn an_answer_is_made_anew_and_an_edited_message_replaces_what_followed() {
    let server = ChatServer::start().await;
    chunks(&server.say("c1", "m1", "call write {}").await);
    chunks(&server.say("c1", "m2", "say later").await);
    let mut anew = message("c1", "m1", "call write {}");
    anew["trigger"] = "regenerate-message".into();
    chunks(&server.client.post("/api/chat", anew).await);
    assert_eq!(server.server.runs(), 2);
    let history =
        || async { server.client.get("/api/chat/c1/messages").await.expect(200)["messages"].clone() };
    assert_eq!(history().await.as_array().unwrap().len(), 2);
    // The same again is the same; another text is an edit.
    let edit = |text: &str| {
        let mut edit = message("c1", "m1", text);
        edit["messageId"] = "m1".into();
        edit
    };
    chunks(&server.client.post("/api/chat", edit("call write {}")).await);
    assert_eq!(server.server.runs(), 2);
    chunks(&server.client.post("/api/chat", edit("say edited")).await);
    let edited = history().await;
    assert_eq!(edited[0]["parts"][0]["text"], "say edited");
    assert_eq!((edited.as_array().unwrap().len(), &edited[1]["parts"][1]["text"]), (2, &json!("edited")));
}

#[tokio::test]
async fn an_agui_client_runs_its_own_tools_and_may_send_a_result_again() {
    let server = ChatServer::start().await;
    let tools = json!([{ "name": "own_tool", "description": "", "parameters": { "type": "object" } }]);
    let run = |id: &str, messages: Value| {
        let input = json!({ "threadId": "t1", "runId": id, "tools": tools, "messages": messages });
        let client = server.client.clone();
        async move { data(&dechunked(&client.post("/api/agui", input).await)) }
    };
    let user = json!({ "id": "u1", "role": "user", "content": "call own_tool {}" });
    let called = run("r1", json!([user])).await;
    let call = &of_kind(&called, "TOOL_CALL_START")["toolCallId"];
    assert_eq!(called.last().unwrap()["outcome"]["pendingToolCallIds"], json!([call]));
    let result = json!({ "id": "x1", "role": "tool", "toolCallId": call, "content": "42" });
    let ended = run("r2", json!([user, result])).await;
    assert!(of_kind(&ended, "TEXT_MESSAGE_CONTENT")["delta"].as_str().unwrap().contains("42"), "{ended:?}");
    let requests = server.model.requests();
    assert_eq!(run("r2", json!([user, result])).await, ended);
    assert_eq!(server.model.requests(), requests, "nothing runs again");
}

#[tokio::test]
async fn the_events_of_the_log_are_sent_as_lines_to_a_client_that_accepts_them() {
    let server = ChatServer::start().await;
    let client = server.client.with("accept", "application/x-ndjson");
    let response = client.post("/api/chat", message("c1", "m1", "call read {}")).await;
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
    let text = dechunked(&response);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["turn"] == "m1" && event["at"].is_i64()), "{text}");
    let kinds: Vec<_> = events.iter().map(|event| event["event"]["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("turn_started", "turn_ended"));
    assert!(kinds.contains(&"tool_called") && kinds.contains(&"text"), "{kinds:?}");
}
