//! A capability of another crate: it learns who calls it, and may add to the envelope's `meta`.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode, Principal};
use toolwright_orchestrator::capabilities::{
    CallIdentity, Capabilities, Capability, CapabilityError, CapabilityFuture, CapabilityOutput,
};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{CallRequest, Context, Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{call, retrieval, to_json, tool};

/// Returns its caller and its arguments.
#[derive(Debug)]
struct Mirror;

impl Capability for Mirror {
    fn call(&self, asker: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let value = json!({
            "function": function, "args": args, "tool": asker.tool, "call": asker.execution_id,
            "session": asker.session, "user": asker.user, "org": asker.org, "roles": asker.roles,
        });
        let answer = match function {
            "search" => Ok(CapabilityOutput { value, meta: Some(("retrieval", "keyword".into())) }),
            _ => Err(CapabilityError::new("NOT_FOUND", "not found")),
        };
        Box::pin(ready(answer))
    }
}

#[tokio::test]
async fn a_capability_knows_its_caller_and_adds_to_meta() {
    let tools = vec![tool("find", &retrieval())];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let look = |args: Value, context: Context| async move {
        let path = args["path"].as_str().unwrap_or_default().to_owned();
        let found = context.call(&path, vec![json!({ "query": "x" })]).await;
        found.map(Into::into).map_err(|error| Failure::new(ErrorKind::NotFound, error.code))
    };
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", look)
        .capabilities(Capabilities::default().with("kb", Arc::new(Mirror)))
        .build();
    let orchestrator = Orchestrator::builder(runtime).build().unwrap();
    let mut new = NewSession::new("phone", Mode::Text);
    new.principal = Principal { id: "mira".into(), org: Some("studio".into()), roles: vec!["editor".into()] };
    let session = orchestrator.create_session(new).await.unwrap().id.clone();

    let ask = async |id: &str, path: &str| {
        to_json(
            &orchestrator.call(CallRequest::new(&session, call(id, "find", json!({ "path": path })))).await,
        )
    };
    let found = ask("c1", "kb.search").await;
    let expected = json!({
        "function": "search", "args": [{ "query": "x" }], "tool": "find", "call": "c1",
        "session": session, "user": "mira", "org": "studio", "roles": ["editor"],
    });
    assert_eq!(found["data"], expected);
    assert_eq!(found["meta"]["retrieval"], "keyword");
    assert_eq!(ask("c2", "kb.get").await["error"]["message"], "NOT_FOUND");
    let absent = ask("c3", "text.validateEmail").await;
    assert_eq!(absent["error"]["message"], "NOT_CONFIGURED");
    assert_eq!(absent["meta"].get("retrieval"), None);
}
