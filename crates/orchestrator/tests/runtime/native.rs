//! Handlers in Rust see the same context and come to the same envelopes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode, Success};
use toolwright_orchestrator::{Context, Runtime, Session};
use toolwright_registry::toolset::Implementation;

use crate::support::{Bench, Memory, call, internal, meta, request, shown};

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
    let (builder, _dir) = Bench::new().add("describe", schema, native("describer")).builder();
    let (client, audit) = (Memory::default(), Memory::default());
    let runtime = builder.native("describer", describe).audit(Arc::new(audit.clone())).build();
    let mut session = Session::new("client-1", Mode::Voice);
    session.client = Arc::new(client.clone());
    session.state = json!({ "step": 2 });
    let mut request = request("describe", json!({}));
    request.session = Arc::new(session);
    let envelope = shown(&runtime.execute(request).await);
    assert_eq!(
        envelope,
        json!({ "ok": true, "intents": [{ "type": "SUPPRESS_AUDIO", "value": true }], "meta": meta("describe"),
            "data": { "args": { "n": 7 }, "client": "client-1", "mode": "voice", "call": "call-1",
                "tool": "describe", "state": { "step": 2 }, "active": true } })
    );
    assert_eq!(client.seen(), [json!({ "type": "hello" }), json!({ "progress": 0.5, "message": "half" })]);
    assert_eq!(audit.seen()[0]["event"], "described");
}

fn runtime_with<F, R>(fields: Value, function: F) -> Runtime
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Success, Failure>> + Send + 'static,
{
    let (builder, _dir) = Bench::new().add("tool", fields, native("function")).builder();
    builder.native("function", function).build()
}

#[tokio::test]
async fn a_panic_ends_the_call_and_nothing_else() {
    let runtime = runtime_with(json!({}), |args: Value, _: Context| async move {
        assert!(args["good"] == true, "secret");
        Ok(json!("fine").into())
    });
    let envelope = call(&runtime, "tool", json!({})).await;
    internal("tool", &envelope);
    assert!(!envelope.to_string().contains("secret"));
    assert_eq!(call(&runtime, "tool", json!({ "good": true })).await["data"], "fine");
}

#[tokio::test]
async fn time_and_cancellation_hold_for_native_handlers() {
    let forever = |_: Value, _: Context| async { std::future::pending().await };
    let runtime = runtime_with(json!({ "timeoutMs": 20 }), forever);
    assert_eq!(call(&runtime, "tool", json!({})).await["error"]["type"], "TRANSIENT");

    let begun = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&begun);
    let runtime = runtime_with(json!({}), move |_: Value, _: Context| {
        told.store(true, Ordering::SeqCst);
        async { std::future::pending().await }
    });
    let request = request("tool", json!({}));
    let cancel = request.cancel.clone();
    let running = tokio::spawn(async move { shown(&runtime.execute(request).await) });
    while !begun.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(running.await.unwrap()["error"]["message"], "The call was cancelled.");
}

#[tokio::test]
async fn side_effects_bind_native_handlers_too() {
    let runtime =
        runtime_with(json!({ "sideEffects": "read_only" }), |_: Value, context: Context| async move {
            let refused = context.send(json!({ "type": "x" })).await.unwrap_err();
            Ok(json!(refused.code).into())
        });
    assert_eq!(call(&runtime, "tool", json!({})).await["data"], "NOT_ALLOWED");
}
