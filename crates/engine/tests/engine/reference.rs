//! The reference tools with all of their own tests, and the handlers printed in the source documents.

use crate::support::{self, options};
use std::{fs, path::Path, sync::Arc, time::Duration};

use crate::case::{CaseHost, envelope, matches};
use serde_json::{Value, json};
use toolwright_engine::{Cancel, Engine, HandlerCall, HostFunction, Limits, Options, Program};

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");

fn capabilities() -> Vec<HostFunction> {
    let asynchronous = [
        "messaging.send",
        "voice.endSession",
        "audio.suppress",
        "kb.search",
        "kb.get",
        "calendar.freeBusy",
        "calendar.propose",
        "calendar.getDraft",
        "calendar.commit",
        "images.draft",
        "images.generate",
        "text.extractContacts",
        "text.formatDatetime",
        "text.validateEmail",
        "http.fetch",
        "callTool",
    ];
    let synchronous = ["voice.isActive", "audit.log", "progress"];
    let asynchronous = asynchronous.into_iter().map(HostFunction::asynchronous);
    asynchronous.chain(synchronous.into_iter().map(HostFunction::synchronous)).collect()
}

fn engine() -> Engine {
    Engine::new(Options { functions: capabilities(), ..options() })
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn with_defaults(mut args: Value, schema: &Value) -> Value {
    for (name, property) in schema["parameters"]["properties"].as_object().unwrap() {
        if let (Some(default), None) = (property.get("default"), args.get(name)) {
            args[name] = default.clone();
        }
    }
    args
}

fn milliseconds(instant: &str) -> i64 {
    let parts: Vec<i64> =
        instant.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    assert!(instant.ends_with('Z'), "{instant}");
    let (year, month, day) = (parts[0], parts[1], parts[2]);
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719_468;
    ((days * 24 + parts[3]) * 60 + parts[4]) * 60_000 + parts[5] * 1000
}

async fn run(
    engine: &Engine,
    program: &Arc<Program>,
    case: &Value,
    args: Value,
) -> (Value, Vec<(String, Vec<Value>)>) {
    let host = CaseHost::new(case);
    let mode = case["mode"].as_str().unwrap_or("text");
    let mut session = json!({ "isActive": true, "toolsVersion": "1", "mode": mode, "state": {} });
    for (key, value) in case["session"].as_object().into_iter().flatten() {
        session[key] = value.clone();
    }
    let call = HandlerCall {
        program: program.clone(),
        args,
        context: json!({
            "clientId": "client", "mode": mode, "executionId": "exec_1",
            "tool": { "id": "tool", "version": "1.0.0", "idempotent": true }, "session": session
        }),
        host: host.clone(),
        limits: Limits::within(Duration::from_secs(10)),
        cancel: Cancel::new(),
        now: case["now"].as_str().map(milliseconds),
        seed: None,
    };
    let result = envelope(engine.run(call).await);
    let calls = host.calls.lock().unwrap().clone();
    (result, calls)
}

fn expected_call(call: &Value) -> (String, Value) {
    let arguments = match (call.get("with"), call.get("with_all")) {
        (_, Some(all)) => all.clone(),
        (Some(one), None) => json!([one]),
        (None, None) => json!({ "$any": true }),
    };
    (call["capability"].as_str().unwrap().to_owned(), arguments)
}

fn check_calls(case: &Value, calls: &[(String, Vec<Value>)], label: &str) {
    let Some(expected) = case["calls"].as_array() else { return };
    assert_eq!(calls.len(), expected.len(), "{label}: {calls:?}");
    for ((path, arguments), expected) in calls.iter().zip(expected) {
        let (capability, with) = expected_call(expected);
        assert_eq!(*path, capability, "{label}");
        assert!(
            matches(&with, &Value::Array(arguments.clone())),
            "{label}: {path} {arguments:?} is not {with}"
        );
    }
}

#[tokio::test]
async fn all_reference_handlers_pass_all_of_their_tests() {
    let engine = engine();
    let mut passed = 0;
    for tool in fs::read_dir(TOOLS).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let schema = read(&tool.join("schema.json"));
        let program = support::program(&fs::read_to_string(tool.join("handler.js")).unwrap());
        for file in fs::read_dir(tool.join("tests")).unwrap().map(|entry| entry.unwrap().path()) {
            let case = read(&file);
            let args = with_defaults(case["args"].clone(), &schema);
            let (result, calls) = run(&engine, &program, &case, args).await;
            let label = file.display().to_string();
            assert!(matches(&case["expect"], &result), "{label}\nexpected {}\ngot {result}", case["expect"]);
            check_calls(&case, &calls, &label);
            passed += 1;
        }
    }
    assert!(passed >= 43, "{passed}");
}

/// The handlers of the source documents, exactly as they are printed there.
const PRINTED: [&str; 3] = [
    include_str!("../printed/002-ignore-user.js"),
    include_str!("../printed/004-ignore-user.js"),
    include_str!("../printed/004-kb-search.js"),
];

#[tokio::test]
async fn handlers_of_the_source_documents_run_unmodified() {
    let engine = engine();
    for source in PRINTED {
        let program = support::program(source);
        if source.contains("duration_seconds") {
            let case = json!({ "now": "2026-03-01T10:00:00Z", "mode": "voice", "capabilities": { "messaging.send": { "returns": null } } });
            let args = json!({ "duration_seconds": 60, "farewell_message": "Bye." });
            let (result, calls) = run(&engine, &program, &case, args.clone()).await;
            assert_eq!(result["data"], json!({ "timeoutUntil": 1_772_359_260_000_i64, "duration": 60 }));
            assert_eq!(
                result["intents"][0],
                json!({ "type": "END_VOICE_SESSION", "after": "farewell_spoken" })
            );
            assert_eq!(calls.len(), 2);
            let broken = json!({ "capabilities": { "messaging.send": { "throws": { "code": "CLOSED", "message": "x" } } } });
            let (result, _) = run(&engine, &program, &broken, args).await;
            assert_eq!(result["error"]["type"], "TRANSIENT");
            assert_eq!(result["error"]["retryable"], true);
        } else {
            let found = json!([{ "id": "doc:a", "type": "doc", "title": "A", "score": 0.5, "sourceType": "crm", "lastUpdated": "x" }]);
            let case = json!({ "mode": "voice", "capabilities": { "kb.search": { "returns": found } } });
            let args =
                json!({ "query": "light", "namespace": "studio", "top_k": 5, "include_snippets": true });
            let (result, calls) = run(&engine, &program, &case, args).await;
            assert_eq!(result["data"]["clamped"], true);
            assert_eq!(result["data"]["results"][0]["url"], Value::Null);
            assert_eq!(calls[1].1[0]["topK"], 3);
            let case = json!({ "capabilities": { "kb.search": { "throws": { "code": "INVALID_NAMESPACE", "message": "x" } } } });
            let (result, _) =
                run(&engine, &program, &case, json!({ "query": "x", "namespace": "moon", "top_k": 1 })).await;
            assert_eq!(result["error"]["message"], "Invalid namespace: moon");
        }
    }
}
