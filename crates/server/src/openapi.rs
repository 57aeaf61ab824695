//! `/openapi.json`: the document is a file beside this one. Tests compare it with the table of routes, and every
//! response of the tests with its schemas.

use crate::request::{ApiRequest, ApiResult};
use crate::{body, json};

/// OpenAPI 3.1.
pub const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn document(_: ApiRequest<'_>) -> ApiResult {
    Ok(body::response(json::MEDIA_TYPE, DOCUMENT))
}
