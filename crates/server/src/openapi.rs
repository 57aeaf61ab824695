//! `/openapi.json`: the document is data beside this file. Tests compare it with the table of routes, and every response
//! of the tests with its schemas.

use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::body::Body;

/// OpenAPI 3.1.
pub const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) fn answer() -> Response<Body> {
    let mut response = Response::new(Body::whole(DOCUMENT));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
