//! An agent loop with Toolwright: a model makes calls, the orchestrator runs them, the model reads the results.
//! The model here is a script; yours is a provider's API.
//!
//! `cargo run --example agent_loop`

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::contract::{Failure, Mode, Success};
use toolwright::orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::{CallRequest, Context, Orchestrator, Runtime, ToolCall};
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

/// The model's calls: the first has invalid arguments, the last needs approval.
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
        print(&format!("model → {} {}", call.tool, call.args));
        let envelope = orchestrator.call(CallRequest::new(session.id.as_str(), call)).await;
        print(&format!("      ← {}", orchestrator.for_model(&session, &envelope)));
    }
    for request in orchestrator.pending_confirmations(Some(&session.id)).await? {
        print(&format!("user  ? {}", request.preview));
        let (token, client_id) = (request.id.as_str(), request.client_id.as_str());
        let approver = Approver {
            token,
            proof: AnswerProof::Transport,
            session: &session.id,
            client_id,
            by: "user",
            principal: None,
        };
        let envelope = orchestrator.approve(&approver, None).await?;
        print(&format!("user  yes: {}", orchestrator.for_model(&session, &envelope)));
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn print(text: &str) {
    println!("{text}");
}
