//! The table of all paths. The OpenAPI document is compared with it by a test.

use std::borrow::Cow;

use hyper::Method;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    CallTool,
    Mcp,
    ListTools,
    DescribeTool,
    CreateSession,
    GetSession,
    EndSession,
    BeginTurn,
    SessionEvents,
    Image,
    ListConfirmations,
    GetConfirmation,
    Approve,
    Reject,
    Metrics,
    Audit,
    OpenApi,
    Prometheus,
    Healthy,
    Ready,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Open,
    /// Anyone who has the address, which nobody can guess. Pages of any site may show what is there.
    Link,
    /// Whoever has authenticated.
    Known,
    /// Who has authenticated and has one of these roles.
    Role(&'static [&'static str]),
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// With at most one `{parameter}`.
    pub path: &'static str,
    pub operation: Operation,
    pub access: Access,
}

/// May look at everything.
pub const ADMIN: &str = "admin";

const fn route(method: &'static str, path: &'static str, operation: Operation, access: Access) -> Route {
    Route { method, path, operation, access }
}

/// Every path there is; the busiest stands first.
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/tools/{toolId}/call", Operation::CallTool, Access::Known),
    route("POST", "/mcp", Operation::Mcp, Access::Known),
    route("GET", "/mcp", Operation::Mcp, Access::Known),
    route("DELETE", "/mcp", Operation::Mcp, Access::Known),
    route("GET", "/v1/tools", Operation::ListTools, Access::Known),
    route("GET", "/v1/tools/{toolId}", Operation::DescribeTool, Access::Known),
    route("POST", "/v1/sessions", Operation::CreateSession, Access::Known),
    route("GET", "/v1/sessions/{sessionId}", Operation::GetSession, Access::Known),
    route("DELETE", "/v1/sessions/{sessionId}", Operation::EndSession, Access::Known),
    route("POST", "/v1/sessions/{sessionId}/turn", Operation::BeginTurn, Access::Known),
    route("GET", "/v1/sessions/{sessionId}/events", Operation::SessionEvents, Access::Known),
    route("GET", "/v1/confirmations", Operation::ListConfirmations, Access::Known),
    route("GET", "/v1/confirmations/{confirmationId}", Operation::GetConfirmation, Access::Known),
    route("POST", "/v1/confirmations/{confirmationId}/approve", Operation::Approve, Access::Known),
    route("POST", "/v1/confirmations/{confirmationId}/reject", Operation::Reject, Access::Known),
    route("GET", "/images/{imageName}", Operation::Image, Access::Link),
    route("GET", "/v1/metrics", Operation::Metrics, Access::Role(&[ADMIN, "metrics"])),
    route("GET", "/v1/audit", Operation::Audit, Access::Role(&[ADMIN])),
    route("GET", "/openapi.json", Operation::OpenApi, Access::Open),
    route("GET", "/metrics", Operation::Prometheus, Access::Role(&[ADMIN, "metrics"])),
    route("GET", "/healthz", Operation::Healthy, Access::Open),
    route("GET", "/readyz", Operation::Ready, Access::Open),
];

/// What a method and a path lead to.
#[derive(Debug)]
pub enum Found<'a> {
    /// With the path's parameter.
    Route(&'static Route, Cow<'a, str>),
    /// The path has these methods.
    OtherMethods(String),
    Nothing,
}

/// Looks a path up. HEAD is answered like GET.
pub fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut others: Vec<&str> = Vec::new();
    for route in ROUTES {
        let Some(parameter) = fits(route.path, path) else { continue };
        if route.method == wanted {
            return match percent_encoding::percent_decode_str(parameter).decode_utf8() {
                Ok(parameter) => Found::Route(route, parameter),
                Err(_) => Found::Nothing,
            };
        }
        others.push(route.method);
        if route.method == "GET" {
            others.push("HEAD");
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others.join(", ")) }
}

/// The parameter of a path that fits a template; empty for a template without one.
fn fits<'a>(template: &str, path: &'a str) -> Option<&'a str> {
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

    fn told(method: &str, path: &str) -> String {
        match find(&method.parse().unwrap(), path) {
            Found::Route(route, parameter) => format!("{:?} {parameter}", route.operation),
            Found::OtherMethods(allow) => allow,
            Found::Nothing => "-".to_owned(),
        }
    }

    #[test]
    fn paths_lead_where_they_should() {
        let cases = [
            ("POST", "/v1/tools/kb_search/call", "CallTool kb_search"),
            ("GET", "/v1/tools/kb_search", "DescribeTool kb_search"),
            ("HEAD", "/v1/tools", "ListTools "),
            ("GET", "/v1/tools/", "-"),
            ("GET", "/v1/tools/a/b", "-"),
            ("POST", "/v1/tools/a%2Fb/call", "CallTool a/b"),
            ("POST", "/v1/tools/%ff/call", "-"),
            ("GET", "/v1/tools/kb_search/call", "POST"),
            ("PUT", "/v1/sessions/s1", "GET, HEAD, DELETE"),
            ("GET", "/images/a.png", "Image a.png"),
            ("GET", "/images/../keys.json", "-"),
            ("GET", "/images/..%2Fkeys.json", "Image ../keys.json"),
            ("GET", "/v2", "-"),
            ("GET", "/", "-"),
            ("POST", "//v1/sessions", "-"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(told(method, path), expected, "{method} {path}");
        }
    }
}
