//! The console: one file per page that collects data, and a view of `toolwright_console` that makes HTML of it. Pages
//! read through orchestrator, agent and registry, and show a principal what its roles allow.

pub(crate) mod assets;
pub(crate) mod audit_check;
pub(crate) mod audit_page;
pub(crate) mod call_page;
pub(crate) mod calls_page;
pub(crate) mod chat_page;
pub(crate) mod confirmations_page;
pub(crate) mod form;
pub(crate) mod home_page;
pub(crate) mod knowledge_base_page;
mod layout;
mod own_call;
pub(crate) mod prompt_page;
pub(crate) mod sessions_page;
pub(crate) mod sign_in_page;
pub(crate) mod tool_page;
pub(crate) mod tool_test;
pub(crate) mod tools_page;
pub(crate) mod toolsets_page;
mod usage_charts;
pub(crate) mod usage_page;
pub(crate) mod voice_page;

use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use toolwright_console::Template;

use crate::body::{self, Body};
use crate::problem::{ErrorForm, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(crate) use layout::layout;

pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// No script or style but the server's own files, and no other host. `data:` is for small pictures in style sheets.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    media-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The response with a page.
pub(crate) fn page(template: &impl Template) -> ApiResult {
    let html = toolwright_console::render(template).map_err(|error| {
        tracing::error!("cannot render a page: {error}");
        Problem::internal()
    })?;
    Ok(body::response(HTML, html))
}

/// As [`page`], with status 422: the page of a form that was refused.
pub(crate) fn refused_page(template: &impl Template) -> ApiResult {
    let mut response = page(template)?;
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    Ok(response)
}

/// Redirects the browser to a path of this server, after a form was accepted.
pub(crate) fn redirect(path: &str) -> Response<Body> {
    let mut response = body::no_content();
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, location);
    response
}

/// The address of this server as the browser knows it.
pub(crate) fn base_url(request: &ApiRequest<'_>) -> String {
    let header = |name| request.head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let scheme = header("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    format!("{scheme}://{}", header("host").unwrap_or_default())
}

/// The response to a failed request of the console. Redirects to the sign-in page if the request is unauthenticated.
pub(crate) fn problem_response(problem: &Problem, head: &Parts, request_id: &HeaderValue) -> Response<Body> {
    if problem.is_unauthenticated() && head.method.is_safe() {
        return redirect(&sign_in_page::path_for(head));
    }
    problem.response(request_id, ErrorForm::Page)
}

/// Whether a browser asks for a page.
pub(crate) fn is_browser(head: &Parts) -> bool {
    let accepts = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    head.method == Method::GET && accepts.contains("text/html")
}

/// Adds the headers that all responses of the console have. Pages are not stored by browsers or proxies.
pub(crate) fn protect(headers: &mut HeaderMap) {
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, forms would come without their origin.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(self)"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
