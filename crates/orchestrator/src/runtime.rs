//! A toolset at work: one call in, one envelope out, whatever happens.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use toolwright_capabilities::Capabilities;
use toolwright_capabilities::http::AllowList;
use toolwright_contract::suggest::nearest;
use toolwright_contract::{Envelope, ErrorKind, Failure, Meta, Success};
use toolwright_engine::{Engine, Host, Limits, Options};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::audit::{Audit, Log};
use crate::backing::Backing;
use crate::call::{Asking, Call, Caller};
use crate::engine::{self, native};
use crate::normalise::Normalised;
use crate::prepared::{self, Prepared};
use crate::request::Request;
use crate::{functions, validation};

/// A toolset, its engines, and what has been prepared so far. Cloning shares it.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// Tells a runtime from others, and does not keep it.
#[derive(Clone)]
pub struct WeakRuntime(Weak<Inner>);

struct Inner {
    toolset: Arc<Toolset>,
    /// The artifact's directory.
    base: PathBuf,
    options: Options,
    limits: Limits,
    /// Started by the first call that needs it.
    engine: OnceLock<Engine>,
    natives: HashMap<String, native::Handler>,
    capabilities: Arc<Capabilities>,
    allow: HashMap<String, AllowList>,
    audit: Arc<dyn Audit>,
    prepared: RwLock<HashMap<String, Slot, RandomState>>,
}

/// A tool that is being prepared by the first who needs it, and what came of that: for good, since a toolset never
/// changes.
type Slot = Arc<OnceCell<Result<Arc<Prepared>, Arc<prepared::Error>>>>;

/// How a runtime is set up.
pub struct Builder(Inner);

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").field("version", &self.0.toolset.version).finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WeakRuntime").field(&self.is_held()).finish()
    }
}

impl WeakRuntime {
    /// Whether this is the one.
    pub fn is_of(&self, runtime: &Runtime) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&runtime.0))
    }

    /// Whether anybody still has it.
    pub fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Builder").field("version", &self.0.toolset.version).finish_non_exhaustive()
    }
}

impl Builder {
    /// Registers an async function under a name that declared tools can refer to.
    #[must_use]
    pub fn native<F, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value, crate::Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Success, Failure>> + Send + 'static,
    {
        self.0.natives.insert(name.into(), native::handler(function));
        self
    }

    /// What JavaScript handlers may use up. The deadline is each call's own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self
    }

    /// How the JavaScript engine is set up.
    #[must_use]
    pub fn engine(mut self, options: Options) -> Self {
        self.0.options = options;
        self
    }

    /// What a tool may reach by `http.fetch`.
    #[must_use]
    pub fn allow(mut self, tool: impl Into<String>, list: AllowList) -> Self {
        self.0.allow.insert(tool.into(), list);
        self
    }

    /// The capabilities, instead of those with default options.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl Into<Arc<Capabilities>>) -> Self {
        self.0.capabilities = capabilities.into();
        self
    }

    /// Where handlers' audit entries go.
    #[must_use]
    pub fn audit(mut self, audit: Arc<dyn Audit>) -> Self {
        self.0.audit = audit;
        self
    }

    pub fn build(mut self) -> Runtime {
        for tool in self.0.toolset.declared() {
            if let Implementation::Http(request) = &tool.implementation {
                let origin = std::slice::from_ref(&request.origin);
                // An address that cannot be read admits nothing: the call is refused.
                let Ok(own) = AllowList::parse(origin) else { continue };
                let id = tool.spec.tool_id.clone();
                let list = match self.0.allow.remove(&id) {
                    Some(more) => own.and(more),
                    None => own,
                };
                self.0.allow.insert(id, list);
            }
        }
        Runtime(Arc::new(self.0))
    }
}

impl Runtime {
    /// Begins a runtime for a toolset whose artifact lies in the directory `base`.
    pub fn builder(toolset: Arc<Toolset>, base: impl Into<PathBuf>) -> Builder {
        Builder(Inner {
            toolset,
            base: base.into(),
            options: Options::default(),
            limits: Limits::within(Duration::ZERO),
            engine: OnceLock::new(),
            natives: HashMap::new(),
            capabilities: Arc::default(),
            allow: HashMap::new(),
            audit: Arc::new(Log),
            prepared: RwLock::default(),
        })
    }

    /// The toolset that it runs.
    pub fn toolset(&self) -> &Toolset {
        &self.0.toolset
    }

    /// Runs one call. Never panics, never answers with anything but an envelope.
    pub async fn execute(&self, request: Request) -> Envelope {
        self.execute_within(request, None, None).await
    }

    /// Runs one call whose capabilities are answered by `host`; what the tool's side effects forbid is still refused.
    pub async fn execute_with(&self, request: Request, host: Arc<dyn Host>) -> Envelope {
        self.execute_within(request, Some(host), None).await
    }

    /// What tells it from others without keeping it.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime(Arc::downgrade(&self.0))
    }

    /// Whether anybody else holds it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Begins in the background what is the same for all runtimes, so that it can go on while tools are read.
    pub fn begin() {
        Engine::begin();
    }

    /// Starts the JavaScript engine ahead of the first call: its threads make realms while the caller goes on.
    pub fn start(&self) {
        self.engine();
    }

    /// Prepares every tool: what was changed since it was built is found before anyone calls it. Returns the faults.
    /// Takes its time; run it beside the serving threads.
    pub fn warm_up(&self) -> Vec<Arc<prepared::Error>> {
        self.0.toolset.list().filter_map(|tool| self.prepare_here(tool).err()).collect()
    }

    pub(crate) fn audit(&self) -> &dyn Audit {
        &*self.0.audit
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.0.engine.get_or_init(|| {
            let functions = functions::placed();
            Engine::new(Options { functions, ..self.0.options.clone() })
        })
    }

    /// Runs a call; `parent` is the call whose handler makes it.
    pub(crate) async fn execute_within(
        &self,
        request: Request,
        stub: Option<Arc<dyn Host>>,
        parent: Option<Arc<Call>>,
    ) -> Envelope {
        let started = Instant::now();
        let tool = self.0.toolset.get(&request.tool);
        let mut meta = Meta {
            tool: request.tool.clone(),
            tool_version: tool.map(|tool| tool.spec.version.clone()),
            registry_version: self.0.toolset.version.clone(),
            duration: 0,
            execution_id: request.execution_id.clone(),
            more: Map::new(),
        };
        let outcome = match tool {
            Some(tool) => self.run(tool, request, stub, parent).await,
            None => Err(self.unknown(&request.tool)),
        };
        meta.duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Envelope { outcome, meta }
    }

    async fn run(
        &self,
        tool: &Tool,
        mut request: Request,
        stub: Option<Arc<dyn Host>>,
        parent: Option<Arc<Call>>,
    ) -> Result<Success, Failure> {
        let prepared = self.ready(tool).await?;
        let mut args = std::mem::take(&mut request.args);
        prepared
            .parameters
            .validate(&mut args)
            .map_err(|errors| validation::refuse(&errors, &tool.spec.json_schema))?;
        let caller = Caller::Given(request.session);
        let backing = stub.map_or_else(|| Backing::served(&prepared, caller.client()), Backing::Stub);
        let Request { execution_id, cancel, now, .. } = request;
        let cancel = Arc::new(OnceLock::from(cancel));
        let asking = Asking { execution_id: execution_id.into(), cancel, now };
        let call = Arc::new(Call::new(self.clone(), prepared, asking, caller, backing, parent));
        let Normalised { outcome, detail } = engine::run(&call, args).await;
        if let Some(detail) = detail {
            tracing::error!(tool = tool.spec.tool_id, execution_id = &*call.execution_id, "{detail}");
        }
        let mut success = outcome?;
        self.check_output(&call, &success)?;
        success.intents.append(&mut call.asked().intents);
        Ok(success)
    }

    /// The tool, ready to be called; why one cannot be used is for the log, a model is told in other words.
    pub(crate) async fn ready(&self, tool: &Tool) -> Result<Arc<Prepared>, Failure> {
        let id = &tool.spec.tool_id;
        self.prepare(id).await.map_err(|_| {
            let message = format!("The tool `{id}` is out of order.");
            let failure = Failure::new(ErrorKind::Internal, message);
            failure.suggest("Go on without it, and tell the user that it cannot be used.")
        })
    }

    pub(crate) fn check_output(&self, call: &Call, success: &Success) -> Result<(), Failure> {
        match &call.prepared.output {
            Some(output) if !output.is_valid(&success.data) => {
                let tool = &call.spec().tool_id;
                tracing::error!(tool, "the handler's data does not fit the tool's `output` schema");
                Err(Failure::unforeseen("The tool gave an answer that does not fit its own description."))
            }
            _ => Ok(()),
        }
    }

    /// Files are read and schemas compiled on a thread that may block; whoever else needs the tool waits for the same.
    async fn prepare(&self, id: &str) -> Result<Arc<Prepared>, Arc<prepared::Error>> {
        let slot = self.slot(id);
        if let Some(done) = slot.get() {
            return done.clone();
        }
        let (this, tool) = (self.clone(), id.to_owned());
        let make = move || this.0.toolset.get(&tool).map(|tool| this.make(tool));
        let made = Box::pin(slot.get_or_init(|| async move {
            let made = match tokio::runtime::Handle::try_current() {
                Ok(runtime) => runtime.spawn_blocking(make).await.ok().flatten(),
                Err(_) => make(),
            };
            made.unwrap_or_else(|| Err(Arc::new(prepared::Error::Lost { tool: id.to_owned() })))
        }));
        made.await.clone()
    }

    /// As [`Self::prepare`], on this thread.
    fn prepare_here(&self, tool: &Tool) -> Result<Arc<Prepared>, Arc<prepared::Error>> {
        let slot = self.slot(&tool.spec.tool_id);
        if let Some(done) = slot.get() {
            return done.clone();
        }
        let made = self.make(tool);
        // A call that came meanwhile has made the same.
        let _ = slot.set(made.clone());
        made
    }

    fn slot(&self, id: &str) -> Slot {
        if let Some(slot) = self.0.prepared.read().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Arc::clone(slot);
        }
        let mut all = self.0.prepared.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(id.to_owned()).or_default())
    }

    fn make(&self, tool: &Tool) -> Result<Arc<Prepared>, Arc<prepared::Error>> {
        let id = &tool.spec.tool_id;
        let made = Prepared::new(tool, &self.0.base, &self.0.natives, self.0.allow.get(id));
        made.map(Arc::new).map_err(|error| {
            tracing::error!(tool = id, "{error}");
            Arc::new(error)
        })
    }

    pub(crate) fn unknown(&self, name: &str) -> Failure {
        let failure = Failure::new(ErrorKind::NotFound, format!("There is no tool `{name}`."));
        match nearest(name, self.0.toolset.ids()) {
            Some(near) => failure.suggest(format!("Did you mean `{near}`?")),
            None => failure.suggest("Use one of the tools that were declared to you."),
        }
    }
}
