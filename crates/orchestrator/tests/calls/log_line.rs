//! The log line of each call.

use serde_json::{Value, json};
use toolwright_contract::Mode;

use crate::log_capture::LogCapture;
use crate::support::{Setup, retrieval};

/// The lines of calls; their durations are checked and removed.
fn calls(log: &LogCapture) -> Vec<Value> {
    let mut lines: Vec<Value> = log.take().into_iter().filter(|line| line["message"] == "call").collect();
    for line in &mut lines {
        let duration = line.as_object_mut().unwrap().remove("duration_ms").unwrap();
        assert!(duration.as_f64().is_some_and(|ms| ms > 0.0 && ms < 60_000.0), "{duration}");
    }
    lines
}

#[tokio::test]
async fn each_call_that_ran_is_one_line_with_tool_category_outcome_duration_and_versions() {
    let fixture = Setup::new().tool("act", json!({ "version": "2.1.0" })).tool("look", retrieval()).build();
    let session = fixture.session(Mode::Text).await;
    let record = fixture.orchestrator.session(&session).await.unwrap().unwrap();
    let registry_version = record.registry_version();
    let line = |tool: &str, category: &str, outcome: &str, version: &str, id: &str| {
        json!({ "level": "INFO", "message": "call", "tool": tool, "category": category, "outcome": outcome,
            "version": version, "registry_version": registry_version, "execution_id": id, "session": session })
    };
    let log = LogCapture::start();
    fixture.call(&session, "c1", "act", json!({ "text": "private" })).await;
    fixture.call(&session, "c2", "look", json!({ "fail": "PERMANENT", "password": "private" })).await;
    assert_eq!(
        calls(&log),
        [line("act", "action", "ok", "2.1.0", "c1"), line("look", "retrieval", "PERMANENT", "1.0.0", "c2")]
    );
    // A replay and a refusal run nothing: they are audited, and are lines of the level `debug`.
    fixture.call(&session, "c1", "act", json!({ "text": "private" })).await;
    fixture.call(&session, "c3", "missing", json!({})).await;
    let lines = log.take();
    assert!(lines.iter().all(|line| line["message"] != "call"), "{lines:?}");
    let events: Vec<_> = lines
        .iter()
        .filter_map(|line| Some((line["event"].as_str()?, line["execution_id"].as_str()?)))
        .collect();
    assert_eq!(events, [("replayed", "c1"), ("refused", "c3")]);
    assert!(!json!(lines).to_string().contains("private"), "{lines:?}");
}
