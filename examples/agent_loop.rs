//! Toolwright in one's own agent loop: a model asks, the orchestrator decides and runs, the model is told.
//! The model here is a script; yours is a provider's API.
//!
//! `cargo run --example agent_loop`

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::contract::{Failure, Mode, Success};
use toolwright::orchestrator::confirm::{Answerer, Proof};
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::{Context, Orchestrator, Runtime, ToolCall};
use toolwright::registry::declared;
use toolwright::registry::toolset::Toolset;

const TOOLS: &str = r#"
tools:
  - name: find_order
    description: Finds an order by its number.
    type: function
    category: retrieval
    parameters:
      type: object
      additionalProperties: false
      required: [number]
      properties: { number: { type: integer } }
    implementation: { type: mock, mock_response: { status: shipped, total: 90 } }
  - name: refund
    description: Refunds an order.
    type: function
    category: action
    requiresConfirmation: true
    parameters:
      type: object
      additionalProperties: false
      required: [number]
      properties: { number: { type: integer } }
    implementation: { type: builtin, handler: refund }
"#;

async fn refund(args: Value, context: Context) -> Result<Success, Failure> {
    context.audit("refunded", args.clone());
    Ok(json!({ "refunded": args["number"] }).into())
}

/// What the model wants: the first call is wrong, the last needs the user.
fn model() -> Vec<ToolCall> {
    let call =
        |id: &str, tool: &str, args: Value| ToolCall { id: Some(id.to_owned()), tool: tool.to_owned(), args };
    vec![
        call("call_1", "find_order", json!({ "nummer": 7 })),
        call("call_2", "find_order", json!({ "number": 7 })),
        call("call_3", "refund", json!({ "number": 7 })),
    ]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new("orders.yaml");
    let (tools, errors) = declared::read(file, TOOLS, &|name| name == "refund");
    assert!(errors.is_empty(), "{errors:?}");
    let toolset = Arc::new(Toolset::empty().with_declared(file, tools).0);
    let runtime = Runtime::builder(toolset, ".").native("refund", refund).build();
    let orchestrator = Orchestrator::builder(runtime).build()?;

    let session = orchestrator.create_session(NewSession::new("demo", Mode::Text)).await?;
    orchestrator.begin_turn(&session.id).await?;
    for call in model() {
        say(&format!("model → {} {}", call.tool, call.args));
        let envelope = orchestrator.call(&session.id, call).await;
        say(&format!("      ← {}", orchestrator.for_model(&session, &envelope)));
    }
    for question in orchestrator.pending(Some(&session.id)).await? {
        say(&format!("user  ? {}", question.preview));
        let (token, client_id) = (question.id.as_str(), question.client_id.as_str());
        let answerer =
            Answerer { token, proof: Proof::Transport, session: &session.id, client_id, by: "user" };
        let envelope = orchestrator.approve(&answerer, None).await?;
        say(&format!("user  yes: {}", orchestrator.for_model(&session, &envelope)));
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn say(text: &str) {
    println!("{text}");
}
