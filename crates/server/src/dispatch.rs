//! From a route to what answers it. Everything but a call is boxed: a call's own future stays small.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::request::Parts;

use crate::app::App;
use crate::body::{self, Body};
use crate::deadline::Watched;
use crate::json::{self, Form};
use crate::mcp;
use crate::openapi;
use crate::problem::{Kind, Problem};
use crate::prometheus;
use crate::query;
use crate::rest::{call, confirmations, events, images, operation, sessions, tools};
use crate::route::{ADMIN, Operation, Route};
use toolwright_contract::Principal;

/// A request whose route and principal are known.
pub(crate) struct Asked<'a> {
    pub app: &'a Arc<App>,
    pub head: &'a Parts,
    pub body: &'a mut Incoming,
    pub watched: &'a Watched<'a>,
    pub route: &'static Route,
    /// The parameter of the path.
    pub parameter: &'a str,
    /// Nobody, on a path that is open.
    pub principal: Option<&'a Arc<Principal>>,
}

pub(crate) type Answer = Result<Response<Body>, Problem>;

pub(crate) async fn dispatch(asked: Asked<'_>) -> Answer {
    match asked.route.operation {
        Operation::CallTool => call::run(asked).await,
        Operation::SessionEvents => Box::pin(events::stream(asked)).await,
        Operation::ListTools => tools::list(&asked),
        Operation::DescribeTool => tools::describe(&asked),
        Operation::OpenApi => Ok(openapi::answer()),
        Operation::Healthy => Ok(operation::healthy()),
        Operation::Prometheus => Ok(prometheus::answer(asked.app)),
        Operation::Metrics => operation::metrics(&asked),
        Operation::Mcp => Box::pin(mcp::answer(asked)).await,
        _ => Box::pin(others(asked)).await,
    }
}

async fn others(asked: Asked<'_>) -> Answer {
    match asked.route.operation {
        Operation::CreateSession => sessions::create(asked).await,
        Operation::GetSession => sessions::get(&asked).await,
        Operation::EndSession => sessions::end(&asked).await,
        Operation::BeginTurn => sessions::begin_turn(asked).await,
        Operation::ListConfirmations => confirmations::list(&asked).await,
        Operation::GetConfirmation => confirmations::get(&asked).await,
        Operation::Approve => confirmations::approve(asked).await,
        Operation::Reject => confirmations::reject(asked).await,
        Operation::Image => images::get(&asked).await,
        Operation::Audit => operation::audit(&asked).await,
        Operation::Ready => operation::ready(&asked).await,
        _ => Err(Problem::new(Kind::Internal, "This path leads nowhere.")),
    }
}

impl Asked<'_> {
    /// The body in its form.
    pub async fn form<T: Form>(&mut self) -> Result<T, Problem> {
        let text: Bytes = body::read(self.body, &self.app.options.limits, self.watched).await?;
        json::parse(&self.head.headers, &text)
    }

    /// Who asks.
    pub fn principal(&self) -> Result<&Arc<Principal>, Problem> {
        self.principal.ok_or_else(|| Problem::new(Kind::Unauthenticated, "Who asks must be known."))
    }

    pub fn is_admin(&self) -> bool {
        self.principal.is_some_and(|principal| principal.roles.iter().any(|role| role == ADMIN))
    }

    /// The values of the query's parameters.
    pub fn query<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<std::borrow::Cow<'_, str>>; N], Problem> {
        query::values(self.head.uri.query(), names)
    }
}
