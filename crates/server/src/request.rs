//! A request whose route and principal are known: what every handler gets.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Map;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::SessionRecord;

use crate::app::App;
use crate::body::{self, Body};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::query;
use crate::route::ADMIN;

pub(crate) struct ApiRequest<'a> {
    pub app: &'a Arc<App>,
    pub head: &'a Parts,
    pub body: &'a mut Incoming,
    /// The parameter of the path, decoded; empty if the route has none.
    pub parameter: &'a str,
    /// `None` on a route that needs no authentication.
    pub principal: Option<&'a Arc<Principal>>,
}

pub(crate) type ApiResult = Result<Response<Body>, Problem>;
pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = ApiResult> + Send + 'a>>;
pub(crate) type RouteHandler = for<'a> fn(ApiRequest<'a>) -> HandlerFuture<'a>;

impl ApiRequest<'_> {
    pub async fn read_body(&mut self) -> Result<Bytes, Problem> {
        body::read(self.body, &self.app.options.limits).await
    }

    /// The body; `fields` are the names that it may have.
    pub async fn read_json<T: DeserializeOwned>(&mut self, fields: &[&str]) -> Result<T, Problem> {
        let text = self.read_body().await?;
        json::parse(&self.head.headers, &text, fields)
    }

    pub fn principal(&self) -> Result<&Arc<Principal>, Problem> {
        self.principal.ok_or_else(|| Problem::new(Kind::UNAUTHENTICATED, "This route needs authentication."))
    }

    pub fn is_admin(&self) -> bool {
        self.principal.is_some_and(|principal| principal.roles.iter().any(|role| role == ADMIN))
    }

    /// The values of the query's parameters, in the order of `names`.
    pub fn query<const N: usize>(&self, names: [&str; N]) -> Result<[Option<Cow<'_, str>>; N], Problem> {
        query::values(self.head.uri.query(), names)
    }

    /// The session with this id, if it belongs to the principal. To others it does not exist.
    pub async fn own_session(&self, id: &str) -> Result<Arc<SessionRecord>, Problem> {
        let principal = self.principal()?;
        let session = self.app.orchestrator.session(id).await?;
        session.filter(|session| owns(principal, session)).ok_or_else(|| Problem::not_found("session"))
    }
}

/// A new session of this principal, which is also its client.
pub(crate) fn new_session(principal: &Principal, mode: Mode) -> NewSession {
    let principal = principal.clone();
    NewSession { id: None, client_id: principal.id.clone(), principal, mode, state: Map::new() }
}

/// Whether a session belongs to this principal.
pub(crate) fn owns(principal: &Principal, session: &SessionRecord) -> bool {
    session.principal.id == principal.id && session.principal.org == principal.org
}
