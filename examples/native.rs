//! A Rust program with a native tool: an async function that is registered by name and declared like any other tool.
//!
//! `cargo run --example native`

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::contract::{ErrorKind, Failure, Mode, Success};
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::{CallRequest, Context, Orchestrator, Runtime, ToolCall};
use toolwright::registry::declared;
use toolwright::registry::toolset::Toolset;

/// The definition that models see. It could as well be a file that `toolwright.toml` names.
const DECLARED: &str = r#"
tools:
  - name: convert_length
    description: Converts a length between metres and feet.
    type: function
    category: utility
    sideEffects: none
    idempotent: true
    parameters:
      type: object
      additionalProperties: false
      required: [value, to]
      properties:
        value: { type: number }
        to: { type: string, enum: [metres, feet] }
    implementation: { type: builtin, handler: length_converter }
"#;

/// The handler: validated arguments and the call's context in, data or a failure out.
async fn convert(args: Value, context: Context) -> Result<Success, Failure> {
    let value = args["value"].as_f64().unwrap_or_default();
    if value < 0.0 {
        let failure = Failure::new(ErrorKind::Validation, "A length cannot be negative.");
        return Err(failure.suggest("Ask the user what they meant."));
    }
    let converted = if args["to"] == "feet" { value / 0.3048 } else { value * 0.3048 };
    context.audit("converted", json!({ "by": context.client_id() }));
    Ok(json!({ "value": converted, "unit": args["to"] }).into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new("convert.yaml");
    let (tools, errors) = declared::read(file, DECLARED, &|name| name == "length_converter");
    assert!(errors.is_empty(), "{errors:?}");
    let (toolset, errors) = Toolset::empty().with_declared(file, tools);
    assert!(errors.is_empty(), "{errors:?}");

    let runtime = Runtime::builder(Arc::new(toolset), ".").native("length_converter", convert).build();
    let orchestrator = Orchestrator::builder(runtime).build()?;
    for args in [
        json!({ "value": 8848.86, "to": "feet" }),
        json!({ "value": -1, "to": "feet" }),
        json!({ "value": "high", "too": "feet" }),
    ] {
        let call = ToolCall { id: None, tool: "convert_length".to_owned(), args };
        let session = NewSession::new("demo", Mode::Text);
        let envelope = orchestrator.call(CallRequest::new(session, call)).await;
        let text = serde_json::to_string_pretty(&*envelope)?;
        #[allow(clippy::print_stdout, reason = "an example shows what it does")]
        {
            println!("{text}");
        }
    }
    Ok(())
}
