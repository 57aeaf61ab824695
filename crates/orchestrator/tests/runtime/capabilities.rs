//! What a handler may touch, and what it may not.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwright_contract::Mode;
use toolwright_orchestrator::capabilities::http::AllowList;
use toolwright_orchestrator::{Cancel, Session};

use crate::support::{Bench, Memory, call, request, shown};

#[tokio::test]
async fn messages_progress_and_audit_reach_those_they_are_for() {
    let body = "
        await context.messaging.send({ type: 'image', url: 'https://x.example/a.png' });
        context.progress(0.25, 'a quarter'); context.progress(7); context.progress();
        context.audit.log('sent', { count: 1 });
        return { ok: true, data: context.voice.isActive() }";
    let (builder, _dir) = Bench::new().tool("send", json!({}), body).builder();
    let (client, audit) = (Memory::default(), Memory::default());
    let runtime = builder.audit(Arc::new(audit.clone())).build();
    let mut request = request("send", json!({}));
    let session = Session { client: Arc::new(client.clone()), ..Session::new("client-1", Mode::Voice) };
    request.session = Arc::new(session);
    assert_eq!(shown(&runtime.execute(request).await)["data"], true);
    assert_eq!(
        client.seen(),
        [
            json!({ "type": "image", "url": "https://x.example/a.png" }),
            json!({ "progress": 0.25, "message": "a quarter" }),
            json!({ "progress": 1.0, "message": null }),
            json!({ "progress": 0.0, "message": null }),
        ]
    );
    assert_eq!(
        audit.seen(),
        [
            json!({ "client": "client-1", "tool": "send", "version": "1.2.3", "call": "call-1", "event": "sent",
            "data": { "count": 1 } })
        ]
    );
}

const CODES: &str = "const codes = {};
    for (const [name, ask] of Object.entries({
        send: () => context.messaging.send({ type: 'x' }), untyped: () => context.messaging.send('x'),
        search: () => context.kb.search({ query: 'x' }), commit: () => context.calendar.commit({}),
        fetch: () => context.http.fetch('https://api.example.com/'), text: () => context.text.validateEmail('x'),
    })) { try { await ask(); codes[name] = 'ok' } catch (error) { codes[name] = error.code } }
    return { ok: true, data: codes }";

#[tokio::test]
async fn side_effects_and_set_up_decide_what_is_there() {
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
        let (runtime, _dir) = Bench::new().tool("ask", json!({ "sideEffects": effects }), CODES).runtime();
        assert_eq!(call(&runtime, "ask", json!({})).await["data"], codes, "{effects}");
    }
}

#[tokio::test]
async fn intents_asked_for_by_function_follow_the_returned_ones() {
    let body =
        "await context.voice.endSession({ after: 'farewell_spoken' }); await context.audio.suppress(true);
        if (args.fail) throw new Error('no');
        return { ok: true, intents: [{ type: 'SUPPRESS_TRANSCRIPT', value: true }] }";
    let (runtime, _dir) = Bench::new().tool("end", json!({ "sideEffects": "none" }), body).runtime();
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

/// A server on loopback that answers every request with the same JSON, and tells its port.
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
async fn fetch_reaches_only_what_is_listed_for_this_tool() {
    let port = server().await;
    let body = "try { const answer = await context.http.fetch(args.url, { method: args.method ?? 'GET' });
            return { ok: true, data: [answer.status, answer.json] } }
        catch (error) { return { ok: true, data: error.code } }";
    let (builder, _dir) = Bench::new()
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
async fn a_cancelled_call_ends_and_its_handler_is_told() {
    let body = "await new Promise((done) => setTimeout(done, 20000)); return { ok: true }";
    let (runtime, _dir) = Bench::new().tool("wait", json!({}), body).runtime();
    let mut request = request("wait", json!({}));
    let cancel = Cancel::new();
    request.cancel = cancel.clone();
    let running = tokio::spawn(async move { shown(&runtime.execute(request).await) });
    tokio::task::yield_now().await;
    cancel.cancel();
    let envelope: Value = running.await.unwrap();
    assert_eq!(envelope["error"]["message"], "The call was cancelled.");
}
