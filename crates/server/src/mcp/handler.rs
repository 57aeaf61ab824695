//! The MCP server: the library calls it for each message of an MCP host.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::oneshot;
use toolwright_contract::Principal;
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::spans::Trace;

use super::caller::{Caller, store_unavailable};
use super::catalog::Catalog;
use super::state::McpState;
use super::tool_call::{CallScope, LibraryCall};
use super::tool_list::ToolList;
use super::{mcp_prompts, tool_docs};

const INSTRUCTIONS: &str = "Call `reg_describe` or read `tool://<id>/doc` before the first use of a tool that is not \
    obvious. A failed call says what to do next in `suggestion`.";

/// Names the parent span of a request, in `_meta` as in HTTP.
const TRACE_PARENT: &str = "traceparent";

/// Handles the messages of one MCP session, or one stateless request.
pub struct Handler {
    state: Arc<McpState>,
    /// Over HTTP each request has its own caller.
    stdio: Option<StdioSession>,
    /// Dropped with the handler: ends the task that reports changes of the list of tools.
    notifications: Mutex<Option<oneshot::Sender<()>>>,
}

/// The session of an MCP host that is connected over stdio.
#[derive(Debug)]
pub(super) struct StdioSession {
    pub principal: Arc<Principal>,
    pub session_id: String,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Handler").field("stdio", &self.stdio).finish_non_exhaustive()
    }
}

impl Handler {
    pub(super) fn new(state: Arc<McpState>, stdio: Option<StdioSession>) -> Self {
        Self { state, stdio, notifications: Mutex::default() }
    }

    async fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let Some(stdio) = &self.stdio else {
            let caller = Caller::from_extensions(&context.extensions).cloned();
            return caller.ok_or_else(|| ErrorData::internal_error("The request has no principal.", None));
        };
        let session = self.state.orchestrator.session(&stdio.session_id).await.map_err(store_unavailable)?;
        let session = session.ok_or_else(|| {
            ErrorData::invalid_request("The session has ended: initialize a new one.", None)
        })?;
        Ok(Caller { principal: Arc::clone(&stdio.principal), session: Some(session) })
    }

    /// The toolset of a caller's session.
    async fn runtime(&self, caller: &Caller) -> Runtime {
        self.state.runtime(caller.session.as_deref()).await
    }

    async fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.state.catalog(&self.runtime(caller).await)
    }

    /// A session keeps its toolset until its MCP host lists the tools again; then it moves to the current one.
    async fn current_catalog(&self, caller: &Caller) -> Result<Arc<Catalog>, ErrorData> {
        let current = self.state.catalog(&self.state.orchestrator.current());
        if let Some(session) = &caller.session
            && !Arc::ptr_eq(&current, &self.catalog(caller).await)
        {
            let adopted = self.state.orchestrator.adopt_current_toolset(&session.id).await;
            adopted.map_err(store_unavailable)?;
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
        let caller = self.caller(&context).await?;
        let is_first = request.as_ref().is_none_or(|request| request.cursor.is_none());
        let catalog =
            if is_first { self.current_catalog(&caller).await? } else { self.catalog(&caller).await };
        let session = self.state.session_of(&caller);
        // The list is of the current toolset, which the session has now.
        let runtime = self.state.orchestrator.current();
        let runtime = if catalog.is_of(&runtime) { runtime } else { self.runtime(&caller).await };
        let visible = catalog.filter(|spec| self.state.orchestrator.is_visible(&runtime, &session, spec));
        let (tools, next_cursor) = catalog.page(request, visible.map(|tool| tool.declaration.clone()))?;
        Ok(ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context).await?;
        let catalog = self.catalog(&caller).await;
        let tool = catalog.get(&request.name);
        let scope = CallScope { state: &self.state, caller: &caller, session: caller.session.clone(), tool };
        // The library moves this future several times: boxed, it stays small.
        let running = Box::pin(LibraryCall { scope, context: &context }.run(request));
        match trace_of(&context) {
            Some(trace) => trace.scope(running).await,
            None => running.await,
        }
    }

    /// The library needs it only for the schema that request headers are validated against.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalog = self.state.catalog(&self.state.orchestrator.current());
        let schema = catalog.header_schema(name)?;
        Some(Tool::new_with_raw(Cow::Owned(name.to_owned()), None, schema))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context).await?;
        let runtime = self.runtime(&caller).await;
        let catalog = self.state.catalog(&runtime);
        let session = self.state.session_of(&caller);
        let visible = catalog.filter(|spec| self.state.orchestrator.is_visible(&runtime, &session, spec));
        let resources = visible.filter_map(|tool| tool_docs::resource(&runtime, tool));
        let (resources, next_cursor) = catalog.page(request, resources)?;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![tool_docs::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context).await?;
        let runtime = self.runtime(&caller).await;
        let catalog = self.state.catalog(&runtime);
        // The documentation of a tool that the caller may not use is reported as not found.
        let tool = tool_docs::tool_id(&request.uri).and_then(|id| catalog.get(id));
        let session = self.state.session_of(&caller);
        let read = tool
            .filter(|tool| self.state.orchestrator.is_visible(&runtime, &session, &tool.spec))
            .and_then(|tool| tool_docs::read(&runtime, tool, &request.uri));
        read.map(Into::into).ok_or_else(|| tool_docs::not_found(&request.uri))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(mcp_prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context).await?;
        let runtime = self.runtime(&caller).await;
        let session = self.state.session_of(&caller);
        mcp_prompts::get(&self.state, &runtime, &session, &request.name).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context).await?;
        let runtime = self.runtime(&caller).await;
        let catalog = self.state.catalog(&runtime);
        let session = self.state.session_of(&caller);
        let visible = catalog.filter(|spec| self.state.orchestrator.is_visible(&runtime, &session, spec));
        let ids = tool_docs::complete(visible, &request);
        Ok(CompletionInfo::new(ids).map(CompleteResult::new).unwrap_or_default())
    }

    /// Notifies the MCP host of changes of its list of tools until the session ends.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (session, principal) = match (&self.stdio, Caller::from_extensions(&context.extensions)) {
            (Some(stdio), _) => (stdio.session_id.clone(), Arc::clone(&stdio.principal)),
            (None, Some(Caller { principal, session: Some(session) })) => {
                (session.id.clone(), Arc::clone(principal))
            }
            (None, _) => return,
        };
        let mut list = ToolList::watch(Arc::clone(&self.state), &session, &principal).await;
        let (end, ended) = oneshot::channel();
        *self.notifications.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        tokio::spawn(async move {
            let peer = &context.peer;
            let notify = async {
                while list.changed().await.is_some()
                    && peer.notify_tool_list_changed().await.is_ok()
                    && peer.notify_resource_list_changed().await.is_ok()
                {}
            };
            tokio::select! {
                _ = ended => {}
                () = notify => {}
            }
        });
    }

    /// The library cancels its own calls; direct calls are cancelled here.
    async fn on_cancelled(
        &self,
        cancelled: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        let caller = Caller::from_extensions(&context.extensions);
        let session = caller.and_then(|caller| caller.session.as_deref());
        if let (Some(session), Some(request)) = (session, &cancelled.request_id) {
            self.state.running_calls.cancel(&session.id, request);
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let supported = SubscriptionFilter::builder().tools_list_changed().resources_list_changed().build();
        Some(requested.intersection(&supported))
    }

    /// Notifies a subscriber of newer toolsets. Without a session, the list changes for no other reason.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut installs = self.state.orchestrator.installs();
        let (wants, sink) = (context.accepted(), context.sink());
        let (tools, resources) = (wants.tools_list_changed, wants.resources_list_changed);
        let notify = async {
            while installs.changed().await.is_ok()
                && (tools != Some(true) || sink.notify_tool_list_changed().await.is_ok())
                && (resources != Some(true) || sink.notify_resource_list_changed().await.is_ok())
            {
            }
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = notify => {}
        }
        Ok(())
    }
}

/// The trace that a request names in its `_meta`, or in a header of its HTTP request.
fn trace_of(context: &RequestContext<RoleServer>) -> Option<Trace> {
    let in_meta = context.meta.get(TRACE_PARENT).and_then(serde_json::Value::as_str);
    let in_header = || context.extensions.get::<Parts>()?.headers.get(TRACE_PARENT)?.to_str().ok();
    Trace::parse(in_meta.or_else(in_header)?)
}
