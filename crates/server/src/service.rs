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
use toolwright_orchestrator::spans::Trace;

use crate::access_log::{Entry, without_secrets};
use crate::app::App;
use crate::body::{self, Body};
use crate::connection_table::ConnectionClass;
use crate::console;
use crate::counters::Counters;
use crate::idle_timer::IdleTimer;
use crate::options::Limits;
use crate::origin;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::request_id;
use crate::route::{self, Access, ErrorForm, Route, RouteMatch};
use crate::voice;

/// The connection that a request came on.
pub(crate) struct Connection<'a> {
    pub peer: &'a str,
    pub idle: &'a Arc<IdleTimer>,
    pub class: ConnectionClass,
}

/// Answers one request, whatever happens.
pub(crate) async fn respond(
    app: &Arc<App>,
    connection: &Connection<'_>,
    request: Request<Incoming>,
) -> Response<Body> {
    let Connection { peer, idle, class } = *connection;
    let is_regular = idle.pause() && class == ConnectionClass::Regular;
    let started = Instant::now();
    let running = Counters::begin(&app.counters.running);
    let (head, mut body) = request.into_parts();
    let id = app.request_ids.for_request(&head.headers);
    let mut state = RequestState::new(running.now, is_regular);
    let result = {
        let handled = pin!(state.handle(app, &head, &mut body));
        let mut handled = pin!(in_trace(&head.headers, handled));
        // A panic fails this request, not the connection.
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| handled.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(_) => Err(Problem::internal()).into(),
        })
        .await
    };
    let mut response = match result {
        Ok(response) => response,
        Err(problem) => {
            // Reading the rest of a refused body does not count as a running request.
            drop(running);
            if class == ConnectionClass::Regular {
                Box::pin(body::drain(&mut body)).await;
            }
            state.problem_response(&problem, &head, &id)
        }
    };
    state.add_headers(&mut response);
    let status = response.status().as_u16();
    app.counters.count(status);
    app.access_log.write(&Entry {
        peer,
        principal: state.principal.as_ref().map_or("-", |principal| principal.id.as_str()),
        method: head.method.as_str(),
        path: &without_secrets(head.uri.path()),
        status,
        bytes: response.body().size_hint().exact(),
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        request_id: id.to_str().unwrap_or_default(),
    });
    response = end_with_credentials(response, app, head.headers, idle);
    let headers = response.headers_mut();
    if app.is_shutting_down() || !is_regular {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(&request_id::HEADER, id);
    response
}

/// A streamed response that ends with its request's credentials. After the response, whole or streamed, the connection
/// is idle.
fn end_with_credentials(
    response: Response<Body>,
    app: &Arc<App>,
    headers: HeaderMap,
    idle: &Arc<IdleTimer>,
) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        idle.restart();
        return response;
    }
    let ended = end_of_credentials(Arc::clone(app), headers);
    response.map(|body| body::end_with(body, ended, idle.restart_later()))
}

/// Resolves when the request would be refused if it came again: its key was revoked, its token has expired.
pub(crate) async fn end_of_credentials(app: Arc<App>, headers: HeaderMap) {
    loop {
        tokio::time::sleep(app.auth.recheck_interval(&headers)).await;
        if app.auth.identify(&headers).await.is_err() {
            return;
        }
    }
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
    /// False on a connection that serves open routes only.
    is_regular: bool,
    principal: Option<Arc<Principal>>,
    /// The form of the route's errors.
    errors: ErrorForm,
    /// The listed origin of the web page that sent the request.
    cors_origin: Option<HeaderValue>,
}

impl RequestState {
    const fn new(running: usize, is_regular: bool) -> Self {
        Self { running, is_regular, principal: None, errors: ErrorForm::Problem, cors_origin: None }
    }

    async fn handle(&mut self, app: &Arc<App>, head: &Parts, body: &mut Incoming) -> ApiResult {
        check_headers(head, &app.options.limits)?;
        let found = route::find(&head.method, head.uri.path());
        if let RouteMatch::Route(route, _) = &found {
            self.errors = route.errors;
        }
        if matches!(found, RouteMatch::None) && console::is_browser(head) {
            self.errors = ErrorForm::Page;
        }
        self.cors_origin = match &found {
            RouteMatch::Route(route, _) if route.access == Access::Link => {
                app.origins.check_link(&head.headers)?
            }
            RouteMatch::Route(route, _) if route.is_of_console() => {
                app.origins.check_page(&head.method, &head.headers)?;
                None
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
            RouteMatch::None if self.errors == ErrorForm::Page => {
                return Err(Problem::not_found("Page", &without_secrets(head.uri.path())));
            }
            RouteMatch::None => {
                let problem = Problem::not_found("Path", &without_secrets(head.uri.path()));
                return Err(problem.help("`/openapi.json` lists all paths."));
            }
        };
        self.check_capacity(app, route)?;
        let principal = self.authenticate(app, route, &head.headers).await?;
        if !route.is_of_console() && !head.method.is_safe() {
            app.auth.check_signed_in_request(&head.headers)?;
        }
        let limit = app.options.limits.requests_per_principal;
        let counted = principal.map(|principal| app.running_requests.begin(principal, limit));
        let _counted = counted.transpose()?;
        (route.handler)(ApiRequest { app, head, body, parameter: &parameter, principal }).await
    }

    /// Refuses a request beyond the limits of connections and of running requests. Health checks must get through when
    /// the server is busy.
    fn check_capacity(&self, app: &App, route: &Route) -> Result<(), Problem> {
        if route.access == Access::Open {
            return Ok(());
        }
        let Limits { connections, connections_per_peer, requests, .. } = &app.options.limits;
        if !self.is_regular {
            let detail = format!(
                "The limit of {connections} connections, or of {connections_per_peer} from one address, is reached."
            );
            return Err(Problem::new(Kind::UNAVAILABLE, detail));
        }
        if self.running > *requests {
            let detail = format!("The limit of {requests} running requests is reached.");
            return Err(Problem::new(Kind::TOO_MANY_REQUESTS, detail));
        }
        Ok(())
    }

    fn problem_response(&self, problem: &Problem, head: &Parts, request_id: &HeaderValue) -> Response<Body> {
        match self.errors {
            ErrorForm::Page => console::problem_response(problem, head, request_id),
            form => problem.response(request_id, form),
        }
    }

    /// Adds the security and CORS headers of the route.
    fn add_headers(&mut self, response: &mut Response<Body>) {
        if self.errors == ErrorForm::Page {
            console::protect(response.headers_mut());
        }
        if let Some(origin) = self.cors_origin.take() {
            origin::allow(response, origin);
        }
    }

    async fn authenticate<'a>(
        &'a mut self,
        app: &App,
        route: &Route,
        headers: &HeaderMap,
    ) -> Result<Option<&'a Arc<Principal>>, Problem> {
        if matches!(route.access, Access::Open | Access::Anonymous | Access::Link) {
            return Ok(None);
        }
        let with_key = match route.access {
            Access::WebSocket => voice::key_as_authorization(headers),
            _ => None,
        };
        let headers = with_key.as_ref().unwrap_or(headers);
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
