//! What MCP asks of a server, answered from a toolset.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::oneshot;
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::observe::Trace;
use toolwright_orchestrator::store::SessionRecord;

use super::call::Calling;
use super::caller::{Caller, unreachable};
use super::catalog::Catalog;
use super::shared::Shared;
use super::{completion, documents, prompts};

const INSTRUCTIONS: &str = "Call `reg_describe` or read `tool://<id>/doc` before the first use of a tool that is not \
    obvious. A failed call says what to do next in `suggestion`.";

/// Names the span that a request belongs to, in `_meta` as in HTTP.
const TRACE_PARENT: &str = "traceparent";

/// One MCP session, or one request that stands alone.
pub struct Handler {
    shared: Arc<Shared>,
    /// Who is at the other end of a pipe; over HTTP each request says so.
    at_pipe: Option<Caller>,
    /// The orchestrator's session since the host has taken on a newer toolset.
    newer: Mutex<Option<Arc<str>>>,
    /// Dropped with the session: ends what was begun for it.
    ends: Mutex<Option<oneshot::Sender<()>>>,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Handler").field("at_pipe", &self.at_pipe).finish_non_exhaustive()
    }
}

impl Handler {
    pub(super) fn new(shared: Arc<Shared>, at_pipe: Option<Caller>) -> Self {
        Self { shared, at_pipe, newer: Mutex::default(), ends: Mutex::default() }
    }

    fn caller<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> Result<&'a Caller, ErrorData> {
        let caller = self.at_pipe.as_ref().or_else(|| Caller::of(&context.extensions));
        caller.ok_or_else(|| ErrorData::internal_error("Who asks is not known.", None))
    }

    /// The session of a caller, as it is now.
    async fn session(&self, caller: &Caller) -> Result<Option<Arc<SessionRecord>>, ErrorData> {
        let newer = self.newer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(id) = newer.or_else(|| caller.session.clone()) else { return Ok(None) };
        let session = self.shared.orchestrator.session(&id).await.map_err(unreachable)?;
        session.map(Some).ok_or_else(|| ErrorData::invalid_request("This session is over: begin anew.", None))
    }

    /// The toolset that holds for a session.
    fn runtime(&self, session: Option<&SessionRecord>) -> Runtime {
        let orchestrator = &self.shared.orchestrator;
        let kept = session.and_then(|session| orchestrator.runtime_for(session));
        kept.unwrap_or_else(|| orchestrator.current())
    }

    /// Its declarations.
    fn catalog(&self, session: Option<&SessionRecord>) -> Arc<Catalog> {
        self.shared.catalog(&self.runtime(session))
    }

    async fn runtime_for(&self, caller: &Caller) -> Result<Runtime, ErrorData> {
        Ok(self.runtime(self.session(caller).await?.as_deref()))
    }

    async fn catalog_for(&self, caller: &Caller) -> Result<Arc<Catalog>, ErrorData> {
        Ok(self.shared.catalog(&self.runtime_for(caller).await?))
    }

    /// A session keeps its toolset until its host lists the tools anew: then it takes on the current one.
    async fn take_on(&self, caller: &Caller) -> Result<Arc<Catalog>, ErrorData> {
        let current = self.shared.catalog(&self.shared.orchestrator.current());
        let Some(session) = self.session(caller).await? else { return Ok(current) };
        let kept = self.catalog(Some(&session));
        if Arc::ptr_eq(&kept, &current) {
            return Ok(kept);
        }
        let new = caller.begin(None, self.shared.mode);
        let begun = self.shared.orchestrator.create_session(new).await.map_err(unreachable)?;
        *self.newer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(begun.id.as_str()));
        if let Some(name) = &caller.session {
            self.shared.sessions.renew(name);
        }
        Ok(current)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolwright", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let is_first = request.as_ref().is_none_or(|request| request.cursor.is_none());
        let catalog = if is_first { self.take_on(caller).await? } else { self.catalog_for(caller).await? };
        let tools = catalog.visible(self.shared.mode, &caller.principal).map(|row| row.tool.clone());
        let (tools, next_cursor) = catalog.page(request, tools)?;
        Ok(ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let session = self.session(caller).await?;
        let catalog = self.catalog(session.as_deref());
        let calling = Calling { shared: &self.shared, caller, session, catalog: &catalog, context: &context };
        // The library moves this future from hand to hand: it must stay small.
        let running = Box::pin(calling.run(request));
        match traced(&context) {
            Some(trace) => trace.scope(running).await,
            None => running.await,
        }
    }

    /// Only asked for a schema that request headers are compared with.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalog = self.shared.catalog(&self.shared.orchestrator.current());
        let schema = catalog.schema_of_headers(name)?;
        Some(Tool::new_with_raw(Cow::Owned(name.to_owned()), None, schema))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        let runtime = self.runtime_for(caller).await?;
        let catalog = self.shared.catalog(&runtime);
        let visible = catalog.visible(self.shared.mode, &caller.principal);
        let resources = visible.filter_map(|row| documents::resource(&runtime, row));
        let (resources, next_cursor) = catalog.page(request, resources)?;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![documents::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let runtime = self.runtime_for(caller).await?;
        let catalog = self.shared.catalog(&runtime);
        // What is not listed does not exist.
        let row = documents::tool_of(&request.uri).and_then(|tool| catalog.get(tool));
        let read = row
            .filter(|row| row.is_for(self.shared.mode, &caller.principal))
            .and_then(|row| documents::read(&runtime, row, &request.uri));
        read.map(Into::into).ok_or_else(|| documents::unknown(&request.uri))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let runtime = self.runtime_for(caller).await?;
        let roles = &caller.principal.roles;
        prompts::get(&self.shared.prompts, runtime.toolset(), roles, &request.name).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context)?;
        let catalog = self.catalog_for(caller).await?;
        Ok(completion::complete(&catalog, self.shared.mode, &caller.principal, &request))
    }

    /// Tells the host of a session when there is a newer toolset, until the session ends.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut installs = self.shared.orchestrator.installs();
        let (ends, mut ended) = oneshot::channel();
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(ends);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut ended => break,
                    changed = installs.changed() => if changed.is_err() { break },
                }
                let told = context.peer.notify_tool_list_changed().await;
                if told.is_err() || context.peer.notify_resource_list_changed().await.is_err() {
                    break;
                }
            }
        });
    }

    /// The library cancels what it knows; the rest is here.
    async fn on_cancelled(
        &self,
        cancelled: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        let name = Caller::of(&context.extensions).and_then(|caller| caller.session.as_deref());
        if let (Some(name), Some(request)) = (name, &cancelled.request_id) {
            self.shared.sessions.cancel(name, request);
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let ours = SubscriptionFilter::builder().tools_list_changed().resources_list_changed().build();
        Some(requested.intersection(&ours))
    }

    /// Tells whoever listens when there is a newer toolset.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut installs = self.shared.orchestrator.installs();
        let wants = context.accepted().clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = installs.changed() => if changed.is_err() { return Ok(()) },
            }
            let sink = context.sink();
            if wants.tools_list_changed == Some(true) && sink.notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
            if wants.resources_list_changed == Some(true)
                && sink.notify_resource_list_changed().await.is_err()
            {
                return Ok(());
            }
        }
    }
}

/// The trace that a request is part of: by its `_meta`, or by the header of its HTTP request.
fn traced(context: &RequestContext<RoleServer>) -> Option<Trace> {
    let told = context.meta.get(TRACE_PARENT).and_then(serde_json::Value::as_str);
    let sent = || context.extensions.get::<Parts>()?.headers.get(TRACE_PARENT)?.to_str().ok();
    Trace::parse(told.or_else(sent)?)
}
