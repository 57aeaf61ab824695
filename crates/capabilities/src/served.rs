//! One function of `context` asked for, one answer: the table from names to capabilities.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;

use crate::http::{AllowList, Fetcher, Options};
use crate::{Client, Fault};

/// What a capability answers, once it does.
pub type Answer = Pin<Box<dyn Future<Output = Result<Answered, Fault>> + Send>>;

/// What a handler gets, and what the caller of the tool is told beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub value: Value,
    /// A member of the envelope's `meta`.
    pub note: Option<(&'static str, Value)>,
}

impl From<Value> for Answered {
    fn from(value: Value) -> Self {
        Self { value, note: None }
    }
}

/// A capability with back ends of its own.
pub trait Capability: Send + Sync + fmt::Debug {
    /// Asks for one of its functions, by the name after the dot.
    fn call(&self, asker: &Asker<'_>, function: &str, args: Vec<Value>) -> Answer;
}

/// The call that a capability serves. What outlives the asking copies what it needs.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub tool: &'a str,
    pub execution_id: &'a str,
    pub client_id: &'a str,
    /// The session, if the call has one that lasts.
    pub session: Option<&'a str>,
    /// The person or program that is behind the session.
    pub user: &'a str,
    pub org: Option<&'a str>,
    pub roles: &'a [String],
    /// When nobody waits for the answer any more.
    pub deadline: Instant,
    /// The time, in milliseconds since 1970, where a test fixes it.
    pub now: Option<i64>,
}

/// For whom a capability is asked.
#[derive(Debug, Clone)]
pub struct Scope {
    pub client: Arc<dyn Client>,
    /// What `http.fetch` may reach; nothing when absent.
    pub allow: Option<Arc<AllowList>>,
}

/// The capabilities that are set up. Shared by all calls.
pub struct Capabilities {
    options: Options,
    /// Made when it is first needed: most toolsets fetch nothing.
    fetcher: OnceLock<Result<Fetcher, String>>,
    /// By the name before the dot.
    others: BTreeMap<&'static str, Arc<dyn Capability>>,
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Capabilities")
            .field("http", &self.options)
            .field("others", &self.others)
            .finish()
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Capabilities {
    /// Sets up what needs no more than these options.
    pub fn new(http: Options) -> Self {
        Self { options: http, fetcher: OnceLock::new(), others: BTreeMap::new() }
    }

    /// Adds a capability: all functions of `context` that begin with this name and a dot.
    #[must_use]
    pub fn with(mut self, name: &'static str, capability: Arc<dyn Capability>) -> Self {
        self.others.insert(name, capability);
        self
    }

    /// Asks for a function by its dotted name, as docs/reference/capabilities.md lists them.
    pub fn call(&self, scope: &Scope, asker: &Asker<'_>, path: &str, mut args: Vec<Value>) -> Answer {
        match path {
            "messaging.send" => {
                let message = if args.is_empty() { Value::Null } else { args.swap_remove(0) };
                if !message.get("type").is_some_and(Value::is_string) {
                    return failed(Fault::new("INVALID_ARGUMENT", "a message has a string `type`"));
                }
                let delivery = scope.client.send(message);
                Box::pin(async move { delivery.await.map(|()| Value::Null.into()) })
            }
            "http.fetch" => self.fetch(scope, args),
            _ => match path.split_once('.').and_then(|(name, rest)| Some((self.others.get(name)?, rest))) {
                Some((capability, function)) => capability.call(asker, function, args),
                None => {
                    failed(Fault::new("NOT_CONFIGURED", format!("`{path}` is not set up on this server")))
                }
            },
        }
    }

    /// `progress(fraction, message?)`: never fails, whatever it is given.
    pub fn progress(&self, scope: &Scope, args: &[Value]) {
        let fraction = args.first().and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, 1.0);
        scope.client.progress(fraction, args.get(1).and_then(Value::as_str));
    }

    fn fetch(&self, scope: &Scope, args: Vec<Value>) -> Answer {
        let Some(allow) = scope.allow.clone() else {
            let help =
                "no host is allowed for this tool: list it under `[tool.<id>.http] allow` in toolwright.toml";
            return failed(Fault::new("NOT_ALLOWED", help));
        };
        match self.fetcher.get_or_init(|| Fetcher::new(self.options.clone())) {
            Ok(fetcher) => {
                let fetcher = fetcher.clone();
                Box::pin(async move { fetcher.fetch(&allow, &args).await.map(Answered::from) })
            }
            Err(error) => {
                tracing::error!("http.fetch cannot be set up: {error}");
                failed(Fault::new("NOT_CONFIGURED", "http.fetch cannot be used on this server"))
            }
        }
    }
}

fn failed(fault: Fault) -> Answer {
    Box::pin(ready(Err(fault)))
}
