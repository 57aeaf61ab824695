//! One request and its response. Request id, counters, access log and the form of errors are handled here and nowhere
//! else, so that handlers only return `Result`.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use toolwright_contract::Principal;
use toolwright_orchestrator::observe::Trace;

use crate::access_log::Entry;
use crate::app::App;
use crate::body::{self, Body};
use crate::counters::Counters;
use crate::idle::IdleTimer;
use crate::options::Limits;
use crate::origin;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::request_id;
use crate::route::{self, Access, Route, RouteMatch};

/// Answers one request, whatever happens.
pub(crate) async fn respond(
    app: &Arc<App>,
    peer: &str,
    idle: &Arc<IdleTimer>,
    request: Request<Incoming>,
) -> Response<Body> {
    idle.pause();
    let started = Instant::now();
    let running = Counters::begin(&app.counters.running);
    let (head, mut body) = request.into_parts();
    let id = app.request_ids.for_request(&head.headers);
    let mut state = RequestState { principal: None, cors_origin: None, running: running.now };
    let result = {
        let handled = pin!(state.handle(app, &head, &mut body));
        let mut handled = pin!(in_trace(&head.headers, handled));
        // A panic fails this request, not the connection.
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| handled.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(_) => Err(Problem::new(Kind::INTERNAL, "The log has the cause.")).into(),
        })
        .await
    };
    let mut response = match result {
        Ok(response) => response,
        Err(problem) => {
            Box::pin(body::drain(&mut body)).await;
            problem.response(&id)
        }
    };
    if let Some(origin) = state.cors_origin {
        origin::allow(&mut response, origin);
    }
    let status = response.status().as_u16();
    app.counters.count(status);
    app.access_log.write(&Entry {
        peer,
        principal: state.principal.as_ref().map_or("-", |principal| principal.id.as_str()),
        method: head.method.as_str(),
        path: head.uri.path(),
        status,
        bytes: response.body().size_hint().exact().unwrap_or(0),
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        request_id: id.to_str().unwrap_or_default(),
    });
    if response.body().size_hint().exact().is_none() {
        response = response.map(|body| body::restart_after(body, idle.restart_later()));
    } else {
        idle.restart();
    }
    let headers = response.headers_mut();
    if app.is_shutting_down() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(&request_id::HEADER, id);
    response
}

/// Runs `work` in the trace that the request names. `work` stays pinned where it is: it is too large to be moved.
async fn in_trace<T>(headers: &HeaderMap, work: Pin<&mut impl Future<Output = T>>) -> T {
    match headers.get("traceparent").and_then(|header| Trace::parse(header.to_str().ok()?)) {
        Some(trace) => trace.scope(work).await,
        None => work.await,
    }
}

/// The facts that are found out about a request before its handler runs.
struct RequestState {
    /// Requests running now, this one included.
    running: usize,
    principal: Option<Arc<Principal>>,
    /// The listed origin of the web page that sent the request.
    cors_origin: Option<HeaderValue>,
}

impl RequestState {
    async fn handle(&mut self, app: &Arc<App>, head: &Parts, body: &mut Incoming) -> ApiResult {
        check_headers(head, &app.options.limits)?;
        let found = route::find(&head.method, head.uri.path());
        self.cors_origin = match &found {
            RouteMatch::Route(route, _) if route.access == Access::Link => {
                app.origins.check_link(&head.headers)?
            }
            _ => app.origins.check(&head.headers)?,
        };
        if self.cors_origin.is_some()
            && let Some(response) = origin::preflight(&head.method, &head.headers)
        {
            return Ok(response);
        }
        let (route, parameter) = match found {
            RouteMatch::Route(route, parameter) => (route, parameter),
            RouteMatch::OtherMethods(allow) => return Err(Problem::method_not_allowed(&allow)),
            RouteMatch::None => return Err(Problem::not_found("path; `/openapi.json` lists all paths")),
        };
        // Health checks must get through when the server is busy.
        if self.running > app.options.limits.requests && route.access != Access::Open {
            let detail = format!("The limit of {} running requests is reached.", app.options.limits.requests);
            return Err(Problem::new(Kind::TOO_MANY_REQUESTS, detail));
        }
        let principal = self.authenticate(app, route, &head.headers).await?;
        (route.handler)(ApiRequest { app, head, body, parameter: &parameter, principal }).await
    }

    async fn authenticate<'a>(
        &'a mut self,
        app: &App,
        route: &Route,
        headers: &HeaderMap,
    ) -> Result<Option<&'a Arc<Principal>>, Problem> {
        if matches!(route.access, Access::Open | Access::Link) {
            return Ok(None);
        }
        let principal = &*self.principal.insert(app.auth.identify(headers).await?);
        if let Access::Role(roles) = route.access
            && !principal.roles.iter().any(|role| roles.contains(&role.as_str()))
        {
            let detail = format!("This route needs the role {}.", roles.join(" or "));
            return Err(Problem::new(Kind::FORBIDDEN, detail));
        }
        Ok(Some(principal))
    }
}

fn check_headers(head: &Parts, limits: &Limits) -> Result<(), Problem> {
    let sizes = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = sizes.sum::<usize>() + head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if bytes > limits.header_bytes || head.headers.len() > limits.headers {
        let (max_bytes, max_count) = (limits.header_bytes, limits.headers);
        let detail =
            format!("A request may have {max_bytes} bytes of headers and path, and {max_count} headers.");
        return Err(Problem::new(Kind::HEADERS_TOO_LARGE, detail));
    }
    Ok(())
}
