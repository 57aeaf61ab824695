//! `GET /v1/models`: the agent as the one model of this server.

use serde_json::{Value, json};

use super::openai_request::{MODEL, unknown_model};
use crate::json;
use crate::request::{ApiRequest, ApiResult};

pub(crate) async fn list(_: ApiRequest<'_>) -> ApiResult {
    Ok(json::response(&json!({ "object": "list", "data": [model()] })))
}

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    match request.parameter {
        MODEL => Ok(json::response(&model())),
        other => Err(unknown_model(other)),
    }
}

fn model() -> Value {
    json!({ "id": MODEL, "object": "model", "created": 1, "owned_by": "toolwright" })
}
