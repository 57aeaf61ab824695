//! The table of all routes: method, path, access, and the handler. A test compares it with the OpenAPI
//! document.

use std::borrow::Cow;

use hyper::Method;

pub use crate::problem::ErrorForm;
use crate::request::RouteHandler;
use crate::rest::{
    audit, blocks, call_history, calls, confirmations, images, messages, monitoring, prompt, session_events,
    sessions, tasks, tools,
};
use crate::{chat, console, mcp, openapi, prometheus, voice};

/// The callers that a route admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Open,
    /// Anyone, within the limits on connections and requests.
    Anonymous,
    /// Anyone who has the URL, which cannot be guessed. Pages of any site may embed the resource.
    Link,
    /// Authenticated callers.
    Authenticated,
    /// As [`Self::Authenticated`]; web pages may send their key as a subprotocol of the WebSocket.
    WebSocket,
    /// Authenticated callers with one of these roles.
    Role(&'static [&'static str]),
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// With at most one `{parameter}`.
    pub path: &'static str,
    pub access: Access,
    /// The form of its errors, those of authentication included.
    pub errors: ErrorForm,
    pub(crate) handler: RouteHandler,
}

/// The role that may read everything.
pub use toolwright_contract::ADMIN;

const METRICS: Access = Access::Role(&[ADMIN, "metrics"]);

const fn route(method: &'static str, path: &'static str, access: Access, handler: RouteHandler) -> Route {
    Route { method, path, access, errors: ErrorForm::Problem, handler }
}

/// A route of the console. One with POST gets its form by [`console::form::read`], which checks the token.
const fn page(method: &'static str, path: &'static str, access: Access, handler: RouteHandler) -> Route {
    route(method, path, access, handler).errors(ErrorForm::Page)
}

impl Route {
    const fn errors(self, errors: ErrorForm) -> Self {
        Self { errors, ..self }
    }

    /// Whether it belongs to the console. The other routes are the API, which the OpenAPI document lists.
    pub fn is_of_console(&self) -> bool {
        self.errors == ErrorForm::Page
    }
}

/// Every route; lookup goes from top to bottom, so the busiest ones come first.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/tools/{toolId}/call", Access::Authenticated, |r| Box::pin(calls::call_tool(r))),
    route("POST", "/mcp", Access::Authenticated, |r| Box::pin(mcp::handle(r))),
    route("GET", "/mcp", Access::Authenticated, |r| Box::pin(mcp::handle(r))),
    route("DELETE", "/mcp", Access::Authenticated, |r| Box::pin(mcp::handle(r))),
    route("GET", "/v1/tools", Access::Authenticated, |r| Box::pin(tools::list(r))),
    route("GET", "/v1/tools/{toolId}", Access::Authenticated, |r| Box::pin(tools::describe(r))),
    route("GET", "/v1/calls", Access::Authenticated, |r| Box::pin(call_history::list(r))),
    route("GET", "/v1/calls/{executionId}", Access::Authenticated, |r| Box::pin(call_history::get(r))),
    route("GET", "/v1/call-events", Access::Authenticated, |r| Box::pin(call_history::stream(r))),
    route("GET", "/v1/sessions", Access::Authenticated, |r| Box::pin(sessions::list(r))),
    route("POST", "/v1/sessions", Access::Authenticated, |r| Box::pin(sessions::create(r))),
    route("GET", "/v1/sessions/{sessionId}", Access::Authenticated, |r| Box::pin(sessions::get(r))),
    route("DELETE", "/v1/sessions/{sessionId}", Access::Authenticated, |r| Box::pin(sessions::end(r))),
    route("POST", "/v1/sessions/{sessionId}/turn", Access::Authenticated, |r| Box::pin(sessions::begin_turn(r))),
    route("GET", "/v1/sessions/{sessionId}/events", Access::Authenticated, |r| Box::pin(session_events::stream(r))),
    route("POST", "/v1/sessions/{sessionId}/messages", Access::Authenticated, |r| Box::pin(messages::answer(r))),
    route("GET", "/v1/prompt", Access::Authenticated, |r| Box::pin(prompt::get(r))),
    route("GET", "/v1/confirmations", Access::Authenticated, |r| Box::pin(confirmations::list(r))),
    route("GET", "/v1/confirmations/{confirmationId}", Access::Authenticated, |r| Box::pin(confirmations::get(r))),
    route("POST", "/v1/confirmations/{confirmationId}/approve", Access::Authenticated, |r| Box::pin(confirmations::approve(r))),
    route("POST", "/v1/confirmations/{confirmationId}/reject", Access::Authenticated, |r| Box::pin(confirmations::reject(r))),
    route("GET", "/v1/tasks", Access::Authenticated, |r| Box::pin(tasks::list(r))),
    route("GET", "/v1/tasks/{taskId}", Access::Authenticated, |r| Box::pin(tasks::get(r))),
    route("POST", "/v1/tasks/{taskId}/cancel", Access::Authenticated, |r| Box::pin(tasks::cancel(r))),
    route("GET", "/v1/tasks/{taskId}/events", Access::Authenticated, |r| Box::pin(tasks::stream(r))),
    route("POST", "/api/chat", Access::Authenticated, |r| Box::pin(chat::post(r))).errors(ErrorForm::Sentence),
    route("GET", "/api/chat/{chatId}/stream", Access::Authenticated, |r| Box::pin(chat::resume(r))).errors(ErrorForm::Sentence),
    route("POST", "/api/chat/{chatId}/stop", Access::Authenticated, |r| Box::pin(chat::stop(r))).errors(ErrorForm::Sentence),
    route("GET", "/api/chat/{chatId}/messages", Access::Authenticated, |r| Box::pin(chat::messages(r))).errors(ErrorForm::Sentence),
    route("POST", "/api/agui", Access::Authenticated, |r| Box::pin(chat::run_agui(r))).errors(ErrorForm::Sentence),
    route("POST", "/v1/responses", Access::Authenticated, |r| Box::pin(chat::create_response(r))).errors(ErrorForm::OpenAi),
    route("GET", "/v1/responses/{responseId}", Access::Authenticated, |r| Box::pin(chat::get_response(r))).errors(ErrorForm::OpenAi),
    route("POST", "/v1/chat/completions", Access::Authenticated, |r| Box::pin(chat::create_completion(r))).errors(ErrorForm::OpenAi),
    route("GET", "/v1/models", Access::Authenticated, |r| Box::pin(chat::list_models(r))).errors(ErrorForm::OpenAi),
    route("GET", "/v1/models/{modelId}", Access::Authenticated, |r| Box::pin(chat::get_model(r))).errors(ErrorForm::OpenAi),
    route("GET", "/voice", Access::WebSocket, |r| Box::pin(voice::connect(r))),
    route("GET", "/images/{imageName}", Access::Link, |r| Box::pin(images::get(r))),
    route("GET", "/v1/metrics", METRICS, |r| Box::pin(monitoring::metrics(r))),
    route("DELETE", "/v1/blocks", Access::Role(&[ADMIN]), |r| Box::pin(blocks::delete(r))),
    route("GET", "/v1/audit", Access::Role(&[ADMIN]), |r| Box::pin(audit::list(r))),
    page("GET", "/", Access::Authenticated, |r| Box::pin(console::home_page::show(r))),
    page("GET", "/chat", Access::Authenticated, |r| Box::pin(console::chat_page::show(r))),
    page("GET", "/chat/{sessionId}", Access::Authenticated, |r| Box::pin(console::chat_page::show(r))),
    page("GET", "/talk", Access::Authenticated, |r| Box::pin(console::voice_page::show(r))),
    page("GET", "/tools", Access::Authenticated, |r| Box::pin(console::tools_page::list(r))),
    page("GET", "/tools/{toolId}", Access::Authenticated, |r| Box::pin(console::tool_page::show(r))),
    page("POST", "/tools/{toolId}/try", Access::Authenticated, |r| Box::pin(console::tool_page::try_it(r))),
    page("POST", "/tools/{toolId}/tests", Access::Role(&[ADMIN]), |r| Box::pin(console::tool_test::save(r))),
    page("GET", "/prompt", Access::Authenticated, |r| Box::pin(console::prompt_page::show(r))),
    page("GET", "/toolsets", Access::Role(&[ADMIN]), |r| Box::pin(console::toolsets_page::show(r))),
    page("GET", "/calls", Access::Authenticated, |r| Box::pin(console::calls_page::show(r))),
    page("GET", "/calls/{executionId}", Access::Authenticated, |r| Box::pin(console::call_page::show(r))),
    page("POST", "/calls/{executionId}/again", Access::Authenticated, |r| Box::pin(console::call_page::repeat_call(r))),
    page("GET", "/confirmations", Access::Authenticated, |r| Box::pin(console::confirmations_page::show(r))),
    page("GET", "/confirmations/count", Access::Authenticated, |r| Box::pin(console::confirmations_page::count(r))),
    page("POST", "/confirmations/{confirmationId}/approve", Access::Authenticated, |r| Box::pin(console::confirmations_page::approve(r))),
    page("POST", "/confirmations/{confirmationId}/reject", Access::Authenticated, |r| Box::pin(console::confirmations_page::reject(r))),
    page("GET", "/sessions", Access::Authenticated, |r| Box::pin(console::sessions_page::list(r))),
    page("GET", "/sessions/{sessionId}", Access::Authenticated, |r| Box::pin(console::sessions_page::show(r))),
    page("POST", "/sessions/{sessionId}/end", Access::Authenticated, |r| Box::pin(console::sessions_page::end(r))),
    page("GET", "/usage", Access::Role(&[ADMIN]), |r| Box::pin(console::usage_page::show(r))),
    page("GET", "/audit", Access::Role(&[ADMIN]), |r| Box::pin(console::audit_page::show(r))),
    page("POST", "/audit/verify", Access::Role(&[ADMIN]), |r| Box::pin(console::audit_page::verify(r))),
    page("GET", "/audit/export", Access::Role(&[ADMIN]), |r| Box::pin(console::audit_page::export(r))),
    page("GET", "/kb", Access::Authenticated, |r| Box::pin(console::knowledge_base_page::show(r))),
    page("GET", "/kb/{recordId}", Access::Authenticated, |r| Box::pin(console::knowledge_base_page::record(r))),
    page("POST", "/kb/add", Access::Role(&[ADMIN]), |r| Box::pin(console::knowledge_base_page::add(r))),
    page("GET", "/sign-in", Access::Anonymous, |r| Box::pin(console::sign_in_page::show(r))),
    page("POST", "/sign-in", Access::Anonymous, |r| Box::pin(console::sign_in_page::sign_in(r))),
    page("POST", "/sign-out", Access::Authenticated, |r| Box::pin(console::sign_in_page::sign_out(r))),
    page("GET", "/assets/{name}", Access::Anonymous, |r| Box::pin(console::assets::get(r))),
    route("GET", "/openapi.json", Access::Open, |r| Box::pin(openapi::document(r))),
    route("GET", "/metrics", METRICS, |r| Box::pin(prometheus::metrics(r))),
    route("GET", "/healthz", Access::Open, |r| Box::pin(monitoring::healthy(r))),
    route("GET", "/readyz", Access::Open, |r| Box::pin(monitoring::ready(r))),
];

/// The result of a lookup.
#[derive(Debug)]
pub enum RouteMatch<'a> {
    /// With the path's parameter.
    Route(&'static Route, Cow<'a, str>),
    /// The path exists with these methods.
    OtherMethods(String),
    None,
}

/// Finds the route of a request. HEAD is answered like GET.
pub fn find<'a>(method: &Method, path: &'a str) -> RouteMatch<'a> {
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut others: Vec<&str> = Vec::new();
    for route in ROUTES {
        let Some(parameter) = match_template(route.path, path) else { continue };
        if route.method == wanted {
            return match percent_encoding::percent_decode_str(parameter).decode_utf8() {
                Ok(parameter) => RouteMatch::Route(route, parameter),
                Err(_) => RouteMatch::None,
            };
        }
        others.push(route.method);
        if route.method == "GET" {
            others.push("HEAD");
        }
    }
    if others.is_empty() { RouteMatch::None } else { RouteMatch::OtherMethods(others.join(", ")) }
}

/// The parameter of a path that matches the template; empty for a template without one.
fn match_template<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, rest)) = template.split_once('{') else {
        return (template == path).then_some("");
    };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    let parameter = path.strip_prefix(before)?.strip_suffix(after)?;
    (!parameter.is_empty() && !parameter.contains('/')).then_some(parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> String {
        match find(&method.parse().unwrap(), path) {
            RouteMatch::Route(route, parameter) => format!("{} {} {parameter}", route.method, route.path),
            RouteMatch::OtherMethods(allow) => allow,
            RouteMatch::None => "-".to_owned(),
        }
    }

    #[test]
    fn a_path_is_matched_with_its_route_and_parameter() {
        let cases = [
            ("POST", "/v1/tools/kb_search/call", "POST /v1/tools/{toolId}/call kb_search"),
            ("GET", "/v1/tools/kb_search", "GET /v1/tools/{toolId} kb_search"),
            ("HEAD", "/v1/tools", "GET /v1/tools "),
            ("GET", "/v1/tools/", "-"),
            ("GET", "/v1/tools/a/b", "-"),
            ("POST", "/v1/tools/a%2Fb/call", "POST /v1/tools/{toolId}/call a/b"),
            ("POST", "/v1/tools/%ff/call", "-"),
            ("GET", "/v1/tools/kb_search/call", "POST"),
            ("PUT", "/v1/sessions/s1", "GET, HEAD, DELETE"),
            ("GET", "/images/a.png", "GET /images/{imageName} a.png"),
            ("GET", "/images/../keys.json", "-"),
            ("GET", "/images/..%2Fkeys.json", "GET /images/{imageName} ../keys.json"),
            ("GET", "/v2", "-"),
            ("GET", "/", "GET / "),
            ("GET", "/assets/console.css", "GET /assets/{name} console.css"),
            ("POST", "//v1/sessions", "-"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(found(method, path), expected, "{method} {path}");
        }
    }
}
