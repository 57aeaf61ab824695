//! A request whose route and principal are known: what every handler gets.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::SessionRecord;

use crate::app::App;
use crate::body::{self, Body, SizeLimit};
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
        let limits = &self.app.options.limits;
        let limit = SizeLimit { bytes: limits.body_bytes, setting: "max_body_kb" };
        body::read(self.body, limit, limits.body_timeout).await
    }

    /// The body of a chat client, which may have the whole conversation in it.
    pub async fn read_chat_json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let limits = &self.app.options.limits;
        let limit = SizeLimit { bytes: limits.chat_body_bytes, setting: "max_chat_body_kb" };
        let text = body::read(self.body, limit, limits.body_timeout).await?;
        json::parse(&self.head.headers, &text, &[])
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

    /// Whether it may choose the id and the state of a new session.
    pub fn may_shape_sessions(&self) -> bool {
        self.is_admin() || self.app.auth.has_local_key(&self.head.headers)
    }

    /// Whether it comes from a program of the operator on this machine that names no principal.
    pub fn is_local_operator(&self) -> bool {
        self.app.auth.is_local_operator(&self.head.headers)
    }

    /// The principal that a call in a session is made for. `None`: the session's own.
    pub fn caller(&self) -> Result<Option<&Arc<Principal>>, Problem> {
        if self.is_local_operator() { Ok(None) } else { self.principal().map(Some) }
    }

    /// The values of the query's parameters, in the order of `names`.
    pub fn query<const N: usize>(&self, names: [&str; N]) -> Result<[Option<Cow<'_, str>>; N], Problem> {
        query::values(self.head.uri.query(), names)
    }

    /// The session with this id, if it belongs to the principal. To others it does not exist.
    pub async fn own_session(&self, id: &str) -> Result<Arc<SessionRecord>, Problem> {
        let principal = self.principal()?;
        let session = self.app.orchestrator.session(id).await?;
        let is_operator = self.is_local_operator();
        session
            .filter(|session| is_operator || owns(principal, session))
            .ok_or_else(|| Problem::not_found("Session", id))
    }
}

/// A new session of this principal, which is also its client.
pub(crate) fn new_session(principal: &Principal, mode: Mode) -> NewSession {
    let (client_id, principal) = (principal.id.clone(), principal.clone());
    NewSession { principal, ..NewSession::new(client_id, mode) }
}

/// Whether a session belongs to the request's principal.
pub(crate) fn owns_session(principal: Option<&Arc<Principal>>, session: &SessionRecord) -> bool {
    principal.is_some_and(|principal| owns(principal, session))
}

/// Whether a session belongs to this principal.
pub(crate) fn owns(principal: &Principal, session: &SessionRecord) -> bool {
    session.principal.is_same_as(principal)
}
