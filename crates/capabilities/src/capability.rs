//! Dispatches a function of `context` (`kb.search`, `http.fetch`, …) to the capability that implements it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;

use crate::http::{AllowList, Fetcher, Options};
use crate::{CapabilityError, Client, Result};

/// The pending result of a capability call.
pub type CapabilityFuture = Pin<Box<dyn Future<Output = Result<CapabilityOutput>> + Send>>;

/// The result of a capability call.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityOutput {
    /// The value that the handler receives.
    pub value: Value,
    /// A member to add to the `meta` of the call's envelope.
    pub meta: Option<(&'static str, Value)>,
}

impl From<Value> for CapabilityOutput {
    fn from(value: Value) -> Self {
        Self { value, meta: None }
    }
}

/// A group of functions with a back end of its own.
pub trait Capability: Send + Sync + Debug {
    /// Calls one of its functions, named by the part after the dot.
    fn call(&self, caller: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture;
}

/// The tool call on whose behalf a capability is called.
#[derive(Debug, Clone, Copy)]
pub struct CallIdentity<'a> {
    pub tool: &'a str,
    pub execution_id: &'a str,
    pub client_id: &'a str,
    /// The id of the session, if it is stored.
    pub session: Option<&'a str>,
    /// The id of the principal.
    pub user: &'a str,
    pub org: Option<&'a str>,
    pub roles: &'a [String],
    pub deadline: Instant,
    /// A fixed time for tests, in milliseconds since 1970.
    pub now: Option<i64>,
}

/// The client and the HTTP allow list of one tool call.
#[derive(Debug, Clone)]
pub struct CallResources {
    pub client: Arc<dyn Client>,
    /// The hosts that `http.fetch` may reach; none if absent.
    pub allow: Option<Arc<AllowList>>,
}

/// The configured capabilities, shared by all calls.
#[derive(Debug, Default)]
pub struct Capabilities {
    options: Options,
    /// Created on first use: most toolsets fetch nothing.
    fetcher: OnceLock<Result<Fetcher, String>>,
    /// By the name before the dot.
    others: BTreeMap<&'static str, Arc<dyn Capability>>,
}

impl Capabilities {
    /// Only `messaging.send`, `progress` and `http.fetch`.
    pub fn new(http: Options) -> Self {
        Self { options: http, ..Self::default() }
    }

    /// Adds a capability: all functions of `context` that begin with `name` and a dot.
    #[must_use]
    pub fn with(mut self, name: &'static str, capability: Arc<dyn Capability>) -> Self {
        self.others.insert(name, capability);
        self
    }

    /// Calls a function by its dotted name, as docs/reference/capabilities.md lists them.
    pub fn call(
        &self,
        resources: &CallResources,
        caller: &CallIdentity<'_>,
        path: &str,
        args: Vec<Value>,
    ) -> CapabilityFuture {
        let other =
            path.split_once('.').and_then(|(name, function)| Some((self.others.get(name)?, function)));
        match (path, other) {
            ("messaging.send", _) => send_message(resources, args),
            ("http.fetch", _) => self.fetch(resources, args),
            (_, Some((capability, function))) => capability.call(caller, function, args),
            _ => {
                failed(CapabilityError::not_configured(format!("`{path}` is not configured on this server")))
            }
        }
    }

    /// `progress(fraction, message?)`. It never fails; invalid arguments count as 0 and no message.
    pub fn progress(&self, resources: &CallResources, args: &[Value]) {
        let fraction = args.first().and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, 1.0);
        resources.client.progress(fraction, args.get(1).and_then(Value::as_str));
    }

    fn fetch(&self, resources: &CallResources, args: Vec<Value>) -> CapabilityFuture {
        let Some(allow) = resources.allow.clone() else {
            return failed(CapabilityError::not_allowed(
                "no host is allowed for this tool: list hosts under `[tool.<id>.http] allow` in toolwright.toml",
            ));
        };
        match self.fetcher.get_or_init(|| Fetcher::new(self.options.clone())) {
            Ok(fetcher) => {
                let fetcher = fetcher.clone();
                Box::pin(async move { fetcher.fetch(&allow, &args).await.map(CapabilityOutput::from) })
            }
            Err(error) => {
                tracing::error!("could not create the client of http.fetch: {error}");
                failed(CapabilityError::not_configured("http.fetch is not available on this server"))
            }
        }
    }
}

fn send_message(resources: &CallResources, args: Vec<Value>) -> CapabilityFuture {
    let message = args.into_iter().next().unwrap_or_default();
    if !message.get("type").is_some_and(Value::is_string) {
        return failed(CapabilityError::invalid("the message must have a string `type`"));
    }
    let sending = resources.client.send(message);
    Box::pin(async move { sending.await.map(|()| Value::Null.into()) })
}

fn failed(error: CapabilityError) -> CapabilityFuture {
    Box::pin(ready(Err(error)))
}
