//! The server for the MCP conformance runner (`scripts/mcp-conformance`): the tools of a toolset, wrapped by a handler
//! for features that Toolwright's tools do not have. `mcp_fixtures FIXTURES.json ADDR:PORT`.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, deprecated)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};
use toolwright_orchestrator::{Context, Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation as Handled, Tool as Authored, Toolset};
use toolwright_server::auth::Auth;
use toolwright_server::auth::keys::KeyFile;
use toolwright_server::mcp::Handler;
use toolwright_server::mcp::rmcp;
use toolwright_server::{Options, Server};

#[derive(Deserialize)]
struct Fixtures {
    tools: Vec<Map<String, Value>>,
    /// Tools with fixed results.
    results: BTreeMap<String, CallToolResult>,
    /// Tools that send one elicitation, in a session.
    asks: BTreeMap<String, ElicitRequest>,
    /// Tools and prompts that reply `input_required`, round by round.
    inputs: BTreeMap<String, Vec<InputRequests>>,
    resources: Vec<ResourceContents>,
    prompts: Vec<PromptFixture>,
}

#[derive(Deserialize)]
struct PromptFixture {
    #[serde(flatten)]
    prompt: Prompt,
    messages: Value,
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let (file, listen) = (args.next().expect("FIXTURES.json"), args.next().expect("ADDR:PORT"));
    let fixtures: Arc<Fixtures> =
        Arc::new(serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap());
    let orchestrator = Orchestrator::builder(runtime(&fixtures)).build().unwrap();
    ORCHESTRATOR.set((orchestrator.clone(), Arc::clone(&fixtures))).ok();
    let options = Options { listen: listen.parse().unwrap(), ..Options::default() };
    let auth = Auth::new(KeyFile::new("/nonexistent/keys.json"), None);
    let wrap = move |inner| FixtureHandler { inner, fixtures: Arc::clone(&fixtures) };
    let server = Server::bind_with(orchestrator, auth, options, wrap).await.unwrap();
    println!("listening on {}", server.address());
    server.run(std::future::pending()).await;
}

/// For the tool that installs a new toolset.
static ORCHESTRATOR: OnceLock<(Orchestrator, Arc<Fixtures>)> = OnceLock::new();

fn runtime(fixtures: &Fixtures) -> Runtime {
    let tools = fixtures.tools.iter().map(tool_from).collect();
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("fixtures.json"), tools);
    assert_eq!(errors, []);
    Runtime::builder(Arc::new(toolset), ".").native("fixture", fixture).build()
}

fn tool_from(fields: &Map<String, Value>) -> Authored {
    let mut spec = json!({ "version": "1.0.0", "category": "utility", "sideEffects": "none", "idempotent": true,
        "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 1000,
        "jsonSchema": { "type": "object", "additionalProperties": false } });
    spec.as_object_mut().unwrap().extend(fields.clone());
    let implementation = Handled::Native("fixture".to_owned());
    Authored { spec: serde_json::from_value(spec).unwrap(), summary: "A fixture.".to_owned(), implementation }
}

async fn fixture(_: Value, context: Context) -> Result<Success, Failure> {
    match context.tool().tool_id.as_str() {
        "test_error_handling" => {
            let message = "This tool intentionally returns an error for testing";
            return Err(Failure::new(ErrorKind::Permanent, message));
        }
        "test_tool_with_progress" => {
            for fraction in [0.0, 0.5, 1.0] {
                context.progress(fraction, None);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        "test_trigger_tool_change" => {
            let (orchestrator, fixtures) = ORCHESTRATOR.get().unwrap();
            orchestrator.install(runtime(fixtures));
        }
        _ => {}
    }
    Ok(Value::from("This is a simple text response for testing.").into())
}

struct FixtureHandler {
    inner: Handler,
    fixtures: Arc<Fixtures>,
}

impl FixtureHandler {
    /// The next round of input requests, if any: each round is answered by its own keys.
    fn next_round(
        &self,
        name: &str,
        given: Option<&InputResponses>,
        state: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Option<InputRequiredResult> {
        let rounds = self.fixtures.inputs.get(name)?;
        let round = state.and_then(|state| state.parse::<usize>().ok()).unwrap_or(0);
        let answered = |round: &InputRequests| {
            round.iter().all(|(key, asked)| {
                given.and_then(|given| given.get(key)).is_some_and(|answer| is_valid(asked, answer))
            })
        };
        let at = if rounds.get(round).is_some_and(answered) { round + 1 } else { round };
        let mut asked = rounds.get(at)?.clone();
        if name == "test_input_required_result_capabilities" {
            let can = context.client_capabilities().unwrap_or_default();
            asked.retain(|_, asked| match asked {
                InputRequest::Elicitation(_) => can.elicitation.is_some(),
                InputRequest::CreateMessage(_) => can.sampling.is_some(),
                _ => can.roots.is_some(),
            });
        }
        Some(InputRequiredResult::new(Some(asked), Some(at.to_string())))
    }

    async fn call_fixture(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResult, ErrorData>> {
        let argument = |name: &str| {
            request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str)
        };
        let text = |text: String| Ok(CallToolResult::success(vec![ContentBlock::text(text)]));
        if let Some(asked) = self.fixtures.asks.get(request.name.as_ref()) {
            let mut params = asked.params.clone();
            if let (ElicitRequestParams::FormElicitationParams { message, .. }, Some(given)) =
                (&mut params, argument("message"))
            {
                given.clone_into(message);
            }
            let answer = match context.peer.create_elicitation(params).await {
                Ok(answer) => answer,
                Err(error) => return Some(Ok(failed(&error))),
            };
            let (action, content) = (json!(answer.action), json!(answer.content));
            return Some(text(format!("Elicitation completed: action={action}, content={content}")));
        }
        match request.name.as_ref() {
            "test_sampling" => {
                let prompt = SamplingMessage::user_text(argument("prompt").unwrap_or_default());
                let asked = CreateMessageRequestParams::new(vec![prompt], 100);
                Some(match context.peer.create_message(asked).await {
                    Ok(answer) => text(format!("LLM response: {}", json!(answer.message.content))),
                    Err(error) => Ok(failed(&error)),
                })
            }
            "test_tool_with_logging" => {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
                    context.peer.notify_logging_message(line).await.ok();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Some(text("Logged.".to_owned()))
            }
            "test_missing_capability" => {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                let can = context.client_capabilities().unwrap_or_default();
                Some(match can.sampling {
                    Some(_) => text("The client has the capability.".to_owned()),
                    None => Err(ErrorData::missing_required_client_capability(needed)),
                })
            }
            _ => None,
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

fn is_valid(asked: &InputRequest, answer: &Value) -> bool {
    match asked {
        InputRequest::Elicitation(_) => answer["action"] == "accept" && answer["content"].is_object(),
        InputRequest::CreateMessage(_) => answer["content"].is_object() || answer["content"].is_array(),
        _ => answer["roots"].is_array(),
    }
}

const EXTRA: [&str; 3] = ["test_sampling", "test_tool_with_logging", "test_missing_capability"];

impl ServerHandler for FixtureHandler {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities.logging = Some(Default::default());
        if let Some(resources) = &mut info.capabilities.resources {
            resources.subscribe = Some(true);
        }
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.inner.list_tools(request, context).await?;
        let Fixtures { results, asks, inputs, .. } = &*self.fixtures;
        let names = results.keys().chain(asks.keys()).chain(inputs.keys()).map(String::as_str).chain(EXTRA);
        let schema = json!({ "type": "object", "properties": {
            "message": { "type": "string" }, "prompt": { "type": "string" } } });
        let schema = Arc::new(schema.as_object().unwrap().clone());
        listed.tools.extend(names.map(|name| Tool::new(name.to_owned(), "A fixture.", Arc::clone(&schema))));
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, given) = (request.name.as_ref(), request.input_responses.as_ref());
        if let Some(asked) = self.next_round(name, given, request.request_state.as_deref(), &context) {
            return Ok(asked.into());
        }
        if self.fixtures.inputs.contains_key(name) {
            return Ok(CallToolResult::success(vec![ContentBlock::text(json!(given).to_string())]).into());
        }
        if let Some(result) = self.fixtures.results.get(name) {
            return Ok(result.clone().into());
        }
        match self.call_fixture(&request, &context).await {
            Some(answer) => answer.map(Into::into),
            None => self.inner.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.inner.list_resources(request, context).await?;
        listed.resources.extend(self.fixtures.resources.iter().map(|contents| {
            let contents = json!(contents);
            let uri = contents["uri"].as_str().unwrap();
            Resource::new(uri, uri)
                .with_description("A fixture.")
                .with_mime_type(contents["mimeType"].as_str().unwrap())
        }));
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.inner.list_resource_templates(request, context).await?;
        listed.resource_templates.push(ResourceTemplate::new("test://template/{id}/data", "template"));
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        if let Some(contents) = self.fixtures.resources.iter().find(|contents| json!(contents)["uri"] == uri)
        {
            return Ok(ReadResourceResult::new(vec![contents.clone()]).into());
        }
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let Some(id) = id else { return self.inner.read_resource(request, context).await };
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        let contents = ResourceContents::text(data.to_string(), uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.inner.list_prompts(request, context).await?;
        listed.prompts.extend(self.fixtures.prompts.iter().map(|fixture| fixture.prompt.clone()));
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (name, given) = (request.name.as_str(), request.input_responses.as_ref());
        if let Some(asked) = self.next_round(name, given, request.request_state.as_deref(), &context) {
            return Ok(asked.into());
        }
        let Some(fixture) = self.fixtures.prompts.iter().find(|fixture| fixture.prompt.name == name) else {
            return self.inner.get_prompt(request, context).await;
        };
        let mut messages = fixture.messages.to_string();
        for (name, value) in request.arguments.iter().flatten() {
            messages = messages.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
        }
        let messages: Vec<PromptMessage> = serde_json::from_str(&messages).unwrap();
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.inner.complete(request, context).await
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.inner.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.inner.listen(context).await
    }
}
