//! One request and its response. The wrapper: id, count, log and the form of errors are here alone, so that everything
//! inside is `?`.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use toolwright_contract::Principal;
use toolwright_orchestrator::observe::Trace;

use crate::access::Line;
use crate::app::App;
use crate::body::{self, Body};
use crate::counters::Counters;
use crate::deadline::Watched;
use crate::dispatch::{Asked, dispatch};
use crate::options::Limits;
use crate::origin;
use crate::problem::{Kind, Problem};
use crate::request_id;
use crate::route::{self, Access, Found, Route};

/// Answers one request, whatever happens.
pub(crate) async fn exchange(
    app: &Arc<App>,
    peer: &str,
    watched: &Watched<'_>,
    request: Request<Incoming>,
) -> Response<Body> {
    watched.works();
    let started = Instant::now();
    let running = Counters::begin(&app.counters.running);
    let (head, mut body) = request.into_parts();
    let id = app.ids.of(&head.headers);
    let mut visit = Visit { principal: None, origin: None, watched, running: running.now };
    let answered = {
        let work = pin!(visit.answer(app, &head, &mut body));
        let mut work = pin!(traced(&head.headers, work));
        // What panics is this request's business, not the connection's.
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(_) => Err(Problem::new(Kind::Internal, "The cause is in the log.")).into(),
        })
        .await
    };
    let mut response = match answered {
        Ok(response) => response,
        Err(problem) => {
            Box::pin(body::drain(&mut body)).await;
            problem.response(&id)
        }
    };
    if let Some(origin) = visit.origin {
        origin::allow(&mut response, origin);
    }
    let status = response.status().as_u16();
    app.counters.count(status);
    app.log.write(&Line {
        request_id: id.to_str().unwrap_or_default(),
        peer,
        principal: visit.principal.as_ref().map_or("-", |principal| principal.id.as_str()),
        method: head.method.as_str(),
        path: head.uri.path(),
        status,
        bytes: response.body().size(),
        took: started.elapsed(),
    });
    if response.body().is_stream() {
        response = response.map(|body| Body::Watched(Box::new(body), watched.streams()));
    } else {
        watched.awaits_head();
    }
    let headers = response.headers_mut();
    if app.is_stopping.load(std::sync::atomic::Ordering::Relaxed) {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(&request_id::HEADER, id);
    response
}

/// In the trace that the request is part of, if it is part of one. The work stays where it is pinned: it is too large to be
/// moved about.
async fn traced<T>(headers: &HeaderMap, work: Pin<&mut impl Future<Output = T>>) -> T {
    match headers.get("traceparent").and_then(|header| Trace::parse(header.to_str().ok()?)) {
        Some(trace) => trace.scope(work).await,
        None => work.await,
    }
}

/// What is found out about a request on the way.
struct Visit<'w> {
    watched: &'w Watched<'w>,
    /// Requests at this time, this one included.
    running: usize,
    principal: Option<Arc<Principal>>,
    origin: Option<HeaderValue>,
}

impl Visit<'_> {
    async fn answer(
        &mut self,
        app: &Arc<App>,
        head: &Parts,
        body: &mut Incoming,
    ) -> Result<Response<Body>, Problem> {
        check_headers(head, &app.options.limits)?;
        let found = route::find(&head.method, head.uri.path());
        self.origin = match &found {
            Found::Route(route, _) if route.access == Access::Link => {
                app.origins.check_link(&head.headers)?
            }
            _ => app.origins.check(&head.headers)?,
        };
        if self.origin.is_some()
            && let Some(answer) = origin::preflight(&head.method, &head.headers)
        {
            return Ok(answer);
        }
        let (route, parameter) = match found {
            Found::Route(route, parameter) => (route, parameter),
            Found::OtherMethods(allow) => return Err(Problem::method_not_allowed(&allow)),
            Found::Nothing => return Err(Problem::not_found("path; `/openapi.json` lists them all")),
        };
        // Whoever watches over the server must get through when it is busy.
        if self.running > app.options.limits.requests && route.access != Access::Open {
            let detail = format!("{} requests are running.", app.options.limits.requests);
            return Err(Problem::new(Kind::TooManyRequests, detail));
        }
        let watched = self.watched;
        let principal = self.identify(app, route, &head.headers).await?;
        dispatch(Asked { app, head, body, watched, route, parameter: &parameter, principal }).await
    }

    async fn identify<'a>(
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
            let detail = format!("It takes the role {}.", roles.join(" or "));
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        Ok(Some(principal))
    }
}

fn check_headers(head: &Parts, limits: &Limits) -> Result<(), Problem> {
    let sizes = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = sizes.sum::<usize>() + head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if bytes > limits.header_bytes || head.headers.len() > limits.headers {
        let (most, count) = (limits.header_bytes, limits.headers);
        return Err(Problem::new(
            Kind::HeadersTooLarge,
            format!("At most {most} bytes and {count} headers are read."),
        ));
    }
    Ok(())
}
