//! `/openapi.json`: the document is a file beside this one. Tests compare it with the table of routes, and every response
//! of the tests with its schemas.

use crate::json;
use crate::request::{ApiRequest, ApiResult};

/// OpenAPI 3.1.
pub const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn document(_: ApiRequest<'_>) -> ApiResult {
    Ok(json::response_from_text(DOCUMENT))
}
