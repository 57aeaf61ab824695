//! A bare axum handler: parses, applies defaults, validates with the `jsonschema` crate, responds with an envelope.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use jsonschema::{Draft, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::{Result, servers, workload};

struct Tool {
    schema: Value,
    validator: Validator,
    /// `None`: the arguments.
    result: Option<Value>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    intents: [u8; 0],
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    tool: &'a str,
    tool_version: &'a str,
    registry_version: &'a str,
    duration: u64,
}

#[tokio::main]
pub async fn serve() -> Result<()> {
    let tool = |name: &str, result: Option<Value>| -> Result<(String, Tool)> {
        let schema = workload::parameters(name);
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        let validator = options.build(&schema).map_err(|error| error.to_string())?;
        Ok((name.to_owned(), Tool { schema, validator, result }))
    };
    let tools = HashMap::from([tool("echo", None)?, tool("kb_search", Some(workload::found()))?]);
    let app = Router::new().route("/v1/tools/{name}/call", post(call)).with_state(Arc::new(tools));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", servers::port()?)).await?;
    axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), app).await?;
    Ok(())
}

async fn call(
    Path(name): Path<String>,
    State(tools): State<Arc<HashMap<String, Tool>>>,
    body: Bytes,
) -> Response {
    let started = Instant::now();
    let (Some(tool), Ok(mut body)) = (tools.get(&name), serde_json::from_slice::<Value>(&body)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut args = body.get_mut("args").map(Value::take).unwrap_or_default();
    apply_defaults(&tool.schema, &mut args);
    let is_valid = tool.validator.is_valid(&args);
    let error =
        (!is_valid).then(|| tool.validator.iter_errors(&args).map(|error| error.to_string()).collect());
    let meta = Meta {
        tool: &name,
        tool_version: "1.0.0",
        registry_version: "1.0.d6d2b4c6",
        duration: u64::try_from(started.elapsed().as_millis()).unwrap_or(0),
    };
    let data = is_valid.then(|| tool.result.as_ref().unwrap_or(&args));
    let envelope = Envelope { ok: is_valid, data, error, intents: [], meta };
    let text = serde_json::to_vec(&envelope).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn apply_defaults(schema: &Value, value: &mut Value) {
    if let (Some(properties), Value::Object(members)) =
        (schema.get("properties").and_then(Value::as_object), value)
    {
        for (name, schema) in properties {
            match (members.get_mut(name), schema.get("default")) {
                (None, Some(default)) => drop(members.insert(name.clone(), default.clone())),
                (Some(member), _) => apply_defaults(schema, member),
                (None, None) => {}
            }
        }
    }
}
