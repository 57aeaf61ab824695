//! Native handlers have the same context and the same envelopes as JavaScript handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode, Success};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{Cancel, Context, Runtime};
use toolwright_registry::toolset::Implementation;

use crate::support::{
    RecordingClient, ToolsetBuilder, assert_internal, call, handler_entries, meta, orchestrator, request,
    to_json,
};

fn native(name: &str) -> Implementation {
    Implementation::Native(name.to_owned())
}

async fn describe(args: Value, context: Context) -> Result<Success, Failure> {
    context
        .send(json!({ "type": "hello" }))
        .await
        .map_err(|error| Failure::new(ErrorKind::Transient, format!("not sent: {}", error.code)))?;
    context.audit("described", json!({ "n": 1 }));
    context.progress(0.5, Some("half"));
    context.intend(json!({ "type": "SUPPRESS_AUDIO", "value": true }));
    Ok(json!({
        "args": args, "client": context.client_id(), "mode": context.mode(), "call": context.execution_id(),
        "tool": context.tool().tool_id, "state": context.state(), "active": context.is_active(),
    })
    .into())
}

#[tokio::test]
async fn a_native_handler_sees_the_same_context() {
    let schema = json!({ "jsonSchema": { "type": "object", "properties": { "n": { "type": "integer", "default": 7 } } } });
    let (builder, _dir) = ToolsetBuilder::new().add("describe", schema, native("describer")).builder();
    let client = RecordingClient::default();
    let orchestrator = orchestrator(&builder.native("describer", describe).build());
    let mut session = NewSession::new("client-1", Mode::Voice);
    session.state.insert("step".to_owned(), 2.into());
    let request = request(&orchestrator, session, "describe", json!({})).await;
    let envelope = to_json(&orchestrator.call(request.client(Arc::new(client.clone()))).await);
    assert_eq!(
        envelope,
        json!({ "ok": true, "intents": [{ "type": "SUPPRESS_AUDIO", "value": true }], "meta": meta("describe"),
            "data": { "args": { "n": 7 }, "client": "client-1", "mode": "voice", "call": "call-1",
                "tool": "describe", "state": { "step": 2 }, "active": true } })
    );
    assert_eq!(
        client.messages(),
        [json!({ "type": "hello" }), json!({ "progress": 0.5, "message": "half" })]
    );
    assert_eq!(handler_entries(&orchestrator).await[0]["event"], "handler:described");
}

fn runtime_with<F, R>(fields: Value, function: F) -> Runtime
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Success, Failure>> + Send + 'static,
{
    let (builder, _dir) = ToolsetBuilder::new().add("tool", fields, native("function")).builder();
    builder.native("function", function).build()
}

#[tokio::test]
async fn a_panic_ends_the_call_and_nothing_else() {
    let runtime = runtime_with(json!({}), |args: Value, _: Context| async move {
        assert!(args["good"] == true, "secret");
        Ok(json!("fine").into())
    });
    let envelope = call(&runtime, "tool", json!({})).await;
    assert_internal("tool", &envelope);
    assert!(!envelope.to_string().contains("secret"));
    assert_eq!(call(&runtime, "tool", json!({ "good": true })).await["data"], "fine");
}

#[tokio::test]
async fn deadlines_and_cancellation_apply_to_native_handlers() {
    let forever = |_: Value, _: Context| async { std::future::pending().await };
    let runtime = runtime_with(json!({ "timeoutMs": 20 }), forever);
    assert_eq!(call(&runtime, "tool", json!({})).await["error"]["type"], "TRANSIENT");

    let begun = Arc::new(AtomicBool::new(false));
    let started = Arc::clone(&begun);
    let runtime = runtime_with(json!({}), move |_: Value, _: Context| {
        started.store(true, Ordering::SeqCst);
        async { std::future::pending().await }
    });
    let orchestrator = orchestrator(&runtime);
    let session = NewSession::new("client-1", Mode::Text);
    let cancel = Cancel::new();
    let request = request(&orchestrator, session, "tool", json!({})).await.cancel(cancel.clone());
    let running = tokio::spawn(async move { to_json(&orchestrator.call(request).await) });
    while !begun.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(running.await.unwrap()["error"]["message"], "The call was cancelled.");
}

#[tokio::test]
async fn side_effects_apply_to_native_handlers() {
    let runtime =
        runtime_with(json!({ "sideEffects": "read_only" }), |_: Value, context: Context| async move {
            let refused = context.send(json!({ "type": "x" })).await.unwrap_err();
            Ok(json!(refused.code).into())
        });
    assert_eq!(call(&runtime, "tool", json!({})).await["data"], "NOT_ALLOWED");
}
