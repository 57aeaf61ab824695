//! The agent's metrics and spans.

use serde_json::{Value, json};
use toolwright_agent::AgentOptions;
use toolwright_server::otlp::{Collector, Exporter};

use super::chat::{ChatServer, answered, chunks, dechunked};
use super::otlp::{attribute, collector, exported};

#[tokio::test]
async fn turns_steps_tokens_first_tokens_and_errors_are_counted_for_prometheus() {
    let server = ChatServer::with(AgentOptions { max_steps: 1, ..AgentOptions::default() }).await;
    chunks(&server.say("c1", "m1", "say one").await);
    chunks(&server.say("c1", "m2", "say two").await);
    // One step, and no answer after the call.
    chunks(&server.say("c2", "m1", "call read {}").await);
    let asked = chunks(&server.say("c3", "m1", "call send {\"to\": \"mira\"}").await);
    chunks(&server.client.post("/api/chat", answered("c3", &asked, false)).await);
    for (number, status) in [401, 429, 429, 500].iter().enumerate() {
        dechunked(&server.say("c4", &format!("m{number}"), &format!("fail {status}")).await);
    }
    let text = server.client.get("/metrics").await.text().to_owned();
    let of = "{provider=\"openai-chat\",model=\"scripted\"";
    for line in [
        format!("toolwright_agent_turns_total{of},outcome=\"completed\"}} 2"),
        format!("toolwright_agent_turns_total{of},outcome=\"step_limit\"}} 2"),
        format!("toolwright_agent_turns_total{of},outcome=\"awaits_approval\"}} 1"),
        format!("toolwright_agent_turns_total{of},outcome=\"failed\"}} 4"),
        format!("toolwright_agent_steps_total{of}}} 8"),
        // Four responses with 3 and 2 tokens each.
        format!("toolwright_agent_tokens_total{of},kind=\"input\"}} 12"),
        format!("toolwright_agent_tokens_total{of},kind=\"output\"}} 8"),
        format!("toolwright_agent_tokens_total{of},kind=\"cached\"}} 0"),
        format!("toolwright_agent_tokens_total{of},kind=\"reasoning\"}} 0"),
        format!("toolwright_agent_errors_total{of},kind=\"authentication\"}} 1"),
        format!("toolwright_agent_errors_total{of},kind=\"rate_limited\"}} 2"),
        format!("toolwright_agent_errors_total{of},kind=\"unavailable\"}} 1"),
        format!("toolwright_agent_first_token_seconds_bucket{of},le=\"+Inf\"}} 4"),
        format!("toolwright_agent_first_token_seconds_count{of}}} 4"),
    ] {
        assert!(text.lines().any(|own| own == line), "no {line} in\n{text}");
    }
    // A histogram never falls, and has one sum.
    let buckets = text.lines().filter(|line| line.starts_with("toolwright_agent_first_token_seconds_bucket"));
    let counts: Vec<u64> = buckets.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    assert!(counts.len() > 5 && counts.is_sorted(), "{counts:?}");
}

/// The number of an attribute.
fn number<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(&Value::Null, |attribute| &attribute["value"]["intValue"])
}

fn finish_reason(span: &Value) -> &Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|one| one["key"] == "gen_ai.response.finish_reasons").unwrap();
    &found["value"]["arrayValue"]["values"][0]["stringValue"]
}

#[tokio::test]
async fn a_turn_is_a_span_around_its_requests_to_the_model_and_its_calls() {
    let (endpoint, mut sent) = collector().await;
    let collector = Collector { endpoint, service: "support".to_owned(), headers: Vec::new() };
    let exporter = Exporter::start(collector).unwrap();
    let server = ChatServer::observed(AgentOptions::default(), Some(exporter.clone())).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let client = server.client.with("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    let said = super::chat::message("c1", "m1", "call read {\"note\": \"private\"}");
    chunks(&client.post("/api/chat", said).await);
    dechunked(&server.say("c2", "m1", "fail 429").await);
    exporter.flush().await;
    let (_, _, spans) = exported(&mut sent);
    let named = |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let (turns, requests, calls) =
        (named("invoke_agent toolwright"), named("chat scripted"), named("execute_tool read"));
    let ([turn, failed_turn], [asked, answered, failed], [call]) = (&turns[..], &requests[..], &calls[..])
    else {
        panic!("{spans:#?}")
    };
    assert_eq!(spans.len(), 6);
    // The turn is in the trace of its request, and the parent of the others.
    assert_eq!((&turn["traceId"], &turn["parentSpanId"]), (&json!(trace), &json!("00f067aa0ba902b7")));
    for child in [asked, answered, call] {
        assert_eq!((&child["traceId"], &child["parentSpanId"]), (&turn["traceId"], &turn["spanId"]));
    }
    assert_eq!(failed["parentSpanId"], failed_turn["spanId"]);
    for (span, operation) in [(turn, "invoke_agent"), (asked, "chat"), (call, "execute_tool")] {
        assert_eq!(attribute(span, "gen_ai.operation.name"), operation);
        assert_eq!(attribute(span, "gen_ai.conversation.id"), attribute(turn, "gen_ai.conversation.id"));
    }
    for span in [turn, asked, answered] {
        assert_eq!(attribute(span, "gen_ai.provider.name"), "openai-chat");
        assert_eq!(attribute(span, "gen_ai.request.model"), "scripted");
    }
    assert_eq!((finish_reason(asked), finish_reason(answered)), (&json!("tool_calls"), &json!("stop")));
    let tokens = |span| {
        (
            number(span, "gen_ai.usage.input_tokens").clone(),
            number(span, "gen_ai.usage.output_tokens").clone(),
        )
    };
    assert_eq!((tokens(asked), tokens(turn)), ((json!("3"), json!("2")), (json!("6"), json!("4"))));
    assert_eq!(attribute(failed, "error.type"), "rate_limited");
    assert_eq!((&failed["status"]["code"], &failed_turn["status"]["code"]), (&json!(2), &json!(2)));
    assert_eq!(attribute(turn, "toolwright.outcome"), "completed");
    // Spans contain nothing that was said, and no key.
    let text = json!(spans).to_string();
    assert!(!text.contains("private") && !text.contains("secret"), "{text}");
}
