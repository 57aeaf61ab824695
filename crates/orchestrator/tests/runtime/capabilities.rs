//! Which capabilities a handler may use.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwright_contract::Mode;
use toolwright_orchestrator::Cancel;
use toolwright_orchestrator::capabilities::http::AllowList;
use toolwright_orchestrator::session::NewSession;

use crate::support::{
    RecordingClient, ToolsetBuilder, call, handler_entries, orchestrator, request, to_json,
};

#[tokio::test]
async fn messages_and_progress_reach_the_client_and_audit_entries_the_store() {
    let body = "
        await context.messaging.send({ type: 'image', url: 'https://x.example/a.png' });
        context.progress(0.25, 'a quarter'); context.progress(7); context.progress();
        context.audit.log('sent', { count: 1 });
        return { ok: true, data: context.voice.isActive() }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("send", json!({}), body).runtime();
    let (client, orchestrator) = (RecordingClient::default(), orchestrator(&runtime));
    let session = NewSession::new("client-1", Mode::Voice);
    let request = request(&orchestrator, session, "send", json!({})).await.client(Arc::new(client.clone()));
    assert_eq!(to_json(&orchestrator.call(request).await)["data"], true);
    assert_eq!(
        client.messages(),
        [
            json!({ "type": "image", "url": "https://x.example/a.png" }),
            json!({ "progress": 0.25, "message": "a quarter" }),
            json!({ "progress": 1.0, "message": null }),
            json!({ "progress": 0.0, "message": null }),
        ]
    );
    let entries = handler_entries(&orchestrator).await;
    assert_eq!(entries.len(), 1);
    for (name, value) in [
        ("clientId", json!("client-1")),
        ("tool", json!("send")),
        ("toolVersion", json!("1.2.3")),
        ("executionId", json!("call-1")),
        ("event", json!("handler:sent")),
        ("data", json!({ "count": 1 })),
    ] {
        assert_eq!(entries[0][name], value, "{name}");
    }
}

const CODES: &str = "const codes = {};
    for (const [name, ask] of Object.entries({
        send: () => context.messaging.send({ type: 'x' }), untyped: () => context.messaging.send('x'),
        search: () => context.kb.search({ query: 'x' }), commit: () => context.calendar.commit({}),
        fetch: () => context.http.fetch('https://api.example.com/'), text: () => context.text.validateEmail('x'),
    })) { try { await ask(); codes[name] = 'ok' } catch (error) { codes[name] = error.code } }
    return { ok: true, data: codes }";

#[tokio::test]
async fn side_effects_and_configuration_decide_which_capabilities_work() {
    let expected = [
        (
            "none",
            json!({ "send": "NOT_ALLOWED", "untyped": "NOT_ALLOWED", "search": "NOT_ALLOWED",
            "commit": "NOT_ALLOWED", "fetch": "NOT_ALLOWED", "text": "NOT_CONFIGURED" }),
        ),
        (
            "read_only",
            json!({ "send": "NOT_ALLOWED", "untyped": "NOT_ALLOWED", "search": "NOT_CONFIGURED",
            "commit": "NOT_ALLOWED", "fetch": "NOT_ALLOWED", "text": "NOT_CONFIGURED" }),
        ),
        (
            "writes",
            json!({ "send": "CLOSED", "untyped": "INVALID_ARGUMENT", "search": "NOT_CONFIGURED",
            "commit": "NOT_CONFIGURED", "fetch": "NOT_ALLOWED", "text": "NOT_CONFIGURED" }),
        ),
    ];
    for (effects, codes) in expected {
        let (runtime, _dir) =
            ToolsetBuilder::new().tool("ask", json!({ "sideEffects": effects }), CODES).runtime();
        assert_eq!(call(&runtime, "ask", json!({})).await["data"], codes, "{effects}");
    }
}

#[tokio::test]
async fn intents_of_functions_follow_the_returned_ones() {
    let body =
        "await context.voice.endSession({ after: 'farewell_spoken' }); await context.audio.suppress(true);
        if (args.fail) throw new Error('no');
        return { ok: true, intents: [{ type: 'SUPPRESS_TRANSCRIPT', value: true }] }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("end", json!({ "sideEffects": "none" }), body).runtime();
    assert_eq!(
        call(&runtime, "end", json!({})).await["intents"],
        json!([
            { "type": "SUPPRESS_TRANSCRIPT", "value": true },
            { "type": "END_VOICE_SESSION", "after": "farewell_spoken" },
            { "type": "SUPPRESS_AUDIO", "value": true },
        ])
    );
    assert_eq!(call(&runtime, "end", json!({ "fail": true })).await.get("intents"), None);
}

/// Starts a server on loopback that responds with the request's method. Returns its port.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                let read = socket.read(&mut buffer).await.unwrap_or(0);
                let method =
                    String::from_utf8_lossy(&buffer[..read]).split(' ').next().unwrap_or("").to_owned();
                let body = json!({ "method": method }).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
                let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn fetch_reaches_only_the_allowed_hosts_of_the_tool() {
    let port = server().await;
    let body = "try { const answer = await context.http.fetch(args.url, { method: args.method ?? 'GET' });
            return { ok: true, data: [answer.status, answer.json] } }
        catch (error) { return { ok: true, data: error.code } }";
    let (builder, _dir) = ToolsetBuilder::new()
        .tool("reader", json!({ "sideEffects": "read_only" }), body)
        .tool("writer", json!({}), body)
        .tool("outsider", json!({}), body)
        .builder();
    let list = AllowList::parse(&[format!("127.0.0.1:{port}")]).unwrap();
    let runtime = builder.allow("reader", list.clone()).allow("writer", list).build();
    let url = format!("http://127.0.0.1:{port}/x");
    let ask = |tool: &'static str, method: &'static str, url: String| {
        let runtime = runtime.clone();
        async move { call(&runtime, tool, json!({ "url": url, "method": method })).await["data"].clone() }
    };
    assert_eq!(ask("reader", "GET", url.clone()).await, json!([200, { "method": "GET" }]));
    assert_eq!(ask("writer", "POST", url.clone()).await, json!([200, { "method": "POST" }]));
    assert_eq!(ask("reader", "POST", url.clone()).await, "NOT_ALLOWED");
    assert_eq!(ask("outsider", "GET", url.clone()).await, "NOT_ALLOWED");
    assert_eq!(ask("reader", "GET", "http://127.0.0.1:1/x".to_owned()).await, "NOT_ALLOWED");
    assert_eq!(ask("reader", "GET", "file:///etc/passwd".to_owned()).await, "NOT_ALLOWED");
}

#[tokio::test]
async fn a_cancelled_call_ends_with_a_transient_failure() {
    let body = "await new Promise((done) => setTimeout(done, 20000)); return { ok: true }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("wait", json!({}), body).runtime();
    let (cancel, orchestrator) = (Cancel::new(), orchestrator(&runtime));
    let session = NewSession::new("client-1", Mode::Text);
    let request = request(&orchestrator, session, "wait", json!({})).await.cancel(cancel.clone());
    let running = tokio::spawn(async move { to_json(&orchestrator.call(request).await) });
    tokio::task::yield_now().await;
    cancel.cancel();
    let envelope: Value = running.await.unwrap();
    assert_eq!(envelope["error"]["message"], "The call was cancelled.");
}

/// Starts a server on loopback that responds with this status. Returns its port.
async fn failing_server(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = socket.read(&mut buffer).await;
            let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    port
}

/// The `error` of a call whose handler does not catch the failure of this request.
async fn uncaught(effects: &str, port: u16, method: &str) -> Value {
    let body = "const answer = await context.http.fetch(args.url, { method: args.method });
        return { ok: true, data: answer.json.order.id }";
    let fields = json!({ "sideEffects": effects, "idempotent": false });
    let (builder, _dir) = ToolsetBuilder::new().tool("order", fields, body).builder();
    let list = AllowList::parse(&[format!("127.0.0.1:{port}")]).unwrap();
    let runtime = builder.allow("order", list).build();
    let url = format!("http://127.0.0.1:{port}/orders");
    call(&runtime, "order", json!({ "url": url, "method": method })).await["error"].clone()
}

#[tokio::test]
async fn a_failure_of_a_capability_that_is_not_caught_keeps_its_kind() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    assert_eq!(
        uncaught("read_only", closed, "GET").await,
        json!({ "type": "TRANSIENT", "message": "The service is unreachable.", "retryable": true,
            "partialSideEffects": false })
    );
    assert_eq!(
        uncaught("read_only", failing_server("429 Too Many Requests\r\nretry-after: 2").await, "GET").await,
        json!({ "type": "RATE_LIMIT", "message": "The service responded with status 429.", "retryable": true,
            "partialSideEffects": false, "details": { "retryAfterMs": 2000 },
            "suggestion": "Wait 2 s before calling it again." })
    );
    let failed = |retryable, partial| {
        json!({ "type": "TRANSIENT", "message": "The service responded with status 503.", "retryable": retryable,
            "partialSideEffects": partial })
    };
    let port = failing_server("503 Service Unavailable").await;
    assert_eq!(uncaught("read_only", port, "GET").await, failed(true, false));
    assert_eq!(uncaught("writes", port, "GET").await, failed(true, false));
    assert_eq!(uncaught("writes", port, "POST").await, failed(false, true));
    // The answer is of another kind: the handler is to blame.
    let error = uncaught("read_only", failing_server("204 No Content").await, "GET").await;
    assert_eq!((&error["type"], &error["partialSideEffects"]), (&json!("INTERNAL"), &json!(false)));
}

#[tokio::test]
async fn a_call_has_one_idempotency_key_and_a_call_of_another_session_with_the_same_id_another() {
    let schema = json!({ "idempotent": true, "sideEffects": "none" });
    let body = "return { ok: true, data: context }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("keys", schema, body).runtime();
    let orchestrator = orchestrator(&runtime);
    let mut keys = Vec::new();
    for _ in 0..2 {
        let request =
            request(&orchestrator, NewSession::new("client-1", Mode::Text), "keys", json!({})).await;
        let data = to_json(&orchestrator.call(request).await)["data"].clone();
        assert_eq!(data["executionId"], "call-1");
        keys.push(data["idempotencyKey"].as_str().unwrap().to_owned());
    }
    assert_eq!((keys[0].len(), keys[1].len()), (64, 64));
    assert_ne!(keys[0], keys[1]);
}
