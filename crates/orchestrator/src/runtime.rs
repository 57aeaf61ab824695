//! A toolset with its engines, capabilities and prepared tools. Knows nothing of sessions or policy.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use foldhash::fast::RandomState;
use serde_json::Value;
use tokio::sync::OnceCell;
use toolwright_capabilities::Capabilities;
use toolwright_capabilities::http::AllowList;
use toolwright_contract::suggest::nearest;
use toolwright_contract::{ErrorKind, Failure, Success};
use toolwright_engine::{Engine, Limits, Options as EngineOptions, Program};
use toolwright_registry::toolset::{Implementation, Module, Tool, Toolset};

use crate::builtin;
use crate::condition::Condition;
use crate::engine::{Handler, native};
use crate::prepared_tool::{self, PreparedTool, Sources};

/// A toolset, its engines, and the tools prepared so far. Cloning shares it.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// Identifies a runtime without keeping it loaded.
#[derive(Clone)]
pub struct WeakRuntime(Weak<Inner>);

struct Inner {
    toolset: Arc<Toolset>,
    sources: Sources,
    limits: Limits,
    engine: Engine,
    natives: HashMap<String, native::Handler>,
    capabilities: Arc<Capabilities>,
    /// The hosts that the configuration allows, by tool.
    allow: HashMap<String, AllowList>,
    prepared: RwLock<HashMap<String, ToolCell, RandomState>>,
    /// The conditions of `availability`, by tool.
    availability: OnceLock<HashMap<String, Condition>>,
}

/// A tool, prepared by the first call that needs it. The result is final, since a toolset never changes.
type ToolCell = Arc<OnceCell<Result<Arc<PreparedTool>, Arc<prepared_tool::Error>>>>;

/// Builds a runtime.
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
    /// Whether it identifies this runtime.
    pub fn is_of(&self, runtime: &Runtime) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&runtime.0))
    }

    /// Whether the runtime is still loaded.
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
    /// Registers an async function under a name that declared tools can refer to. It replaces a builtin handler of the
    /// same name.
    #[must_use]
    pub fn native<F, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value, crate::Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Success, Failure>> + Send + 'static,
    {
        self.0.natives.insert(name.into(), native::handler(function));
        self
    }

    /// The limits of JavaScript handlers. The deadline is that of each call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self
    }

    /// The engine of JavaScript handlers, from [`engine`](crate::engine()). Without one, their calls are refused.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.0.engine = engine;
        self
    }

    /// The hosts that a tool may reach with `http.fetch`.
    #[must_use]
    pub fn allow(mut self, tool: impl Into<String>, list: AllowList) -> Self {
        self.0.allow.insert(tool.into(), list);
        self
    }

    /// Replaces the capabilities, which have default options otherwise.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl Into<Arc<Capabilities>>) -> Self {
        self.0.capabilities = capabilities.into();
        self
    }

    pub fn build(self) -> Runtime {
        Runtime(Arc::new(self.0))
    }
}

impl Runtime {
    /// Starts to build a runtime for a toolset whose artifact is in the directory `base`.
    pub fn builder(toolset: Arc<Toolset>, base: impl Into<PathBuf>) -> Builder {
        Builder(Inner {
            toolset,
            sources: Sources::Directory(base.into()),
            limits: Limits::within(Duration::ZERO),
            engine: crate::engine(EngineOptions::default()),
            natives: builtin::handlers(),
            capabilities: Arc::default(),
            allow: HashMap::new(),
            prepared: RwLock::default(),
            availability: OnceLock::new(),
        })
    }

    /// A runtime of another toolset with the engine, capabilities, native handlers, limits and allowed hosts of this
    /// one.
    pub(crate) fn with_toolset(&self, toolset: Toolset, sources: BTreeMap<String, String>) -> Self {
        let Inner { limits, engine, natives, capabilities, allow, .. } = &*self.0;
        Self(Arc::new(Inner {
            toolset: Arc::new(toolset),
            sources: Sources::Stored(sources),
            limits: limits.clone(),
            engine: engine.clone(),
            natives: natives.clone(),
            capabilities: Arc::clone(capabilities),
            allow: allow.clone(),
            prepared: RwLock::default(),
            availability: OnceLock::new(),
        }))
    }

    /// The sources of all handlers, by digest. Those that cannot be read are left out: their tools cannot be used.
    /// Blocks.
    pub(crate) fn sources(&self) -> BTreeMap<String, String> {
        let mut sources = BTreeMap::new();
        for tool in self.0.toolset.list() {
            let Implementation::Module(module) = &tool.implementation else { continue };
            match self.program(tool, module) {
                Ok(program) => {
                    sources.extend(
                        program.modules.iter().map(|it| (prepared_tool::digest(&it.text), it.text.clone())),
                    );
                }
                Err(error) => tracing::warn!("{error}"),
            }
        }
        sources
    }

    /// The program of a tool: that of the prepared tool, since its files may have changed meanwhile, or else from them.
    fn program(&self, tool: &Tool, module: &Module) -> Result<Arc<Program>, prepared_tool::Error> {
        let id = &tool.spec.tool_id;
        let prepared = self.cell(id).get().and_then(|prepared| prepared.clone().ok());
        match prepared.as_ref().map(|prepared| &prepared.handler) {
            Some(Handler::JavaScript(program)) => Ok(Arc::clone(program)),
            _ => prepared_tool::load(id, module, &self.0.sources).map(Arc::new),
        }
    }

    pub fn toolset(&self) -> &Toolset {
        &self.0.toolset
    }

    /// A reference that does not keep it loaded.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime(Arc::downgrade(&self.0))
    }

    /// Whether anything but the orchestrator's table holds it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Prepares every tool, so that errors are found before the first call. Returns the errors. Blocks: run it on a
    /// thread of its own.
    pub fn warm_up(&self) -> Vec<Arc<prepared_tool::Error>> {
        self.0.toolset.list().filter_map(|tool| self.prepare_blocking(tool).err()).collect()
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The prepared tool. The log has the reason why a tool cannot be used; the model only learns that it cannot.
    pub(crate) async fn prepared(&self, tool: &Tool) -> Result<Arc<PreparedTool>, Failure> {
        let id = &tool.spec.tool_id;
        self.prepare(id).await.map_err(|_| {
            let message = format!("The tool `{id}` cannot be used: it failed to load.");
            let failure = Failure::new(ErrorKind::Internal, message);
            failure.suggest("Continue without it, and tell the user that it cannot be used.")
        })
    }

    /// Reads files and compiles schemas on a blocking thread. Concurrent callers wait for the same result.
    async fn prepare(&self, id: &str) -> Result<Arc<PreparedTool>, Arc<prepared_tool::Error>> {
        let cell = self.cell(id);
        if let Some(prepared) = cell.get() {
            return prepared.clone();
        }
        let (this, tool) = (self.clone(), id.to_owned());
        let load = move || this.0.toolset.get(&tool).map(|tool| this.load(tool));
        let prepared = Box::pin(cell.get_or_init(|| async move {
            let prepared = match tokio::runtime::Handle::try_current() {
                Ok(runtime) => runtime.spawn_blocking(load).await.ok().flatten(),
                Err(_) => load(),
            };
            prepared.unwrap_or_else(|| Err(Arc::new(prepared_tool::Error::Cancelled { tool: id.to_owned() })))
        }));
        prepared.await.clone()
    }

    /// As [`Self::prepare`], on this thread.
    fn prepare_blocking(&self, tool: &Tool) -> Result<Arc<PreparedTool>, Arc<prepared_tool::Error>> {
        let cell = self.cell(&tool.spec.tool_id);
        if let Some(prepared) = cell.get() {
            return prepared.clone();
        }
        let prepared = self.load(tool);
        // A concurrent call has set the same result.
        let _ = cell.set(prepared.clone());
        prepared
    }

    fn cell(&self, id: &str) -> ToolCell {
        if let Some(cell) = self.0.prepared.read().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Arc::clone(cell);
        }
        let mut all = self.0.prepared.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(id.to_owned()).or_default())
    }

    fn load(&self, tool: &Tool) -> Result<Arc<PreparedTool>, Arc<prepared_tool::Error>> {
        let id = &tool.spec.tool_id;
        let allow = self.allow_list(tool);
        let prepared = PreparedTool::new(tool, &self.0.sources, &self.0.natives, allow.as_ref());
        prepared.map(Arc::new).map_err(|error| {
            tracing::error!(tool = id, "{error}");
            Arc::new(error)
        })
    }

    /// The hosts that a tool may reach: those of the configuration, and the one that an `http` tool declares.
    fn allow_list(&self, tool: &Tool) -> Option<AllowList> {
        let configured = self.0.allow.get(&tool.spec.tool_id).cloned();
        let Implementation::Http(request) = &tool.implementation else { return configured };
        // An invalid origin allows nothing: the call is refused.
        let own = AllowList::parse(std::slice::from_ref(&request.origin)).ok();
        match (own, configured) {
            (Some(own), Some(more)) => Some(own.and(more)),
            (own, configured) => own.or(configured),
        }
    }

    /// The condition of a tool's `availability`. One that does not compile holds for no session, as its calls fail.
    pub(crate) fn availability(&self, id: &str) -> Option<&Condition> {
        let conditions = self.0.availability.get_or_init(|| {
            let of = |tool: &Tool| {
                let source = &tool.spec.availability.as_ref()?.condition;
                let compiled = Condition::compile(source).or_else(|_| Condition::compile("false"));
                Some((tool.spec.tool_id.clone(), compiled.ok()?))
            };
            self.0.toolset.list().filter_map(of).collect()
        });
        conditions.get(id)
    }

    /// `known` are the tools that may be suggested.
    pub(crate) fn unknown_tool<'t>(&self, name: &str, known: impl IntoIterator<Item = &'t str>) -> Failure {
        let failure = Failure::new(ErrorKind::NotFound, format!("There is no tool `{name}`."));
        match nearest(name, known) {
            Some(nearest) => failure.suggest(format!("Did you mean `{nearest}`?")),
            None => failure.suggest("Use one of the tools that were declared to you."),
        }
    }
}
