//! `GET /chat`, `GET /chat/{sessionId}`: the user's conversations with the agent. The page talks to `/api/chat`.

use serde_json::Value;
use toolwright_agent::{Agent, EventBody, Model};
use toolwright_console::chat::{ChatPage, Conversation};
use toolwright_console::parts::{Notice, Tone};
use toolwright_console::{Layout, Page};
use toolwright_contract::{Mode, SideEffects};
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::store::{Backend, SessionQuery, SessionRecord, SessionStatus};

use super::{layout, page};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult, new_session};

/// The most entries of the list.
const MAX_CONVERSATIONS: usize = 30;
const MAX_TITLE_CHARS: usize = 80;
const MAX_SUGGESTIONS: usize = 3;
const MAX_SUGGESTION_CHARS: usize = 100;
/// How many tools are searched for an example.
const MAX_EXAMINED: usize = 100;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let session = match request.parameter {
        "" => None,
        id => Some(request.own_session(id).await?),
    };
    let layout = Layout { scripts: &["chat.js"], ..layout(&request, Page::Chat, "Chat").await? };
    let agent = request.app.options.agent.as_ref();
    let toolset = request.app.orchestrator.current();
    page(&ChatPage {
        layout,
        subline: agent.map_or_else(String::new, |agent| describe(agent.model())),
        notices: notices(agent),
        is_ended: session.as_ref().is_some_and(|session| session.status != SessionStatus::Active),
        session: session.map(|session| session.id.clone()).unwrap_or_default(),
        conversations: conversations(&request, agent).await?,
        suggestions: suggestions(&request, &toolset)?,
    })
}

fn describe(model: &Model) -> String {
    match model {
        Model::Offline => "The offline agent quotes the knowledge base and runs tools.".to_owned(),
        model => format!("{} by {}, with the tools of this server.", model.name(), model.provider()),
    }
}

fn notices(agent: Option<&Agent>) -> Vec<Notice> {
    match agent.map(Agent::model) {
        None => {
            vec![Notice::new(Tone::Warn, "Chat is not configured.", "This server runs without an agent.")]
        }
        Some(Model::Offline) => {
            let text = "The offline agent answers by quoting the knowledge base. For a model, set `[agent]` in \
                        toolwright.toml, or start the server with a provider's key:";
            let fix = "OPENAI_API_KEY=… toolwright serve";
            vec![Notice::new(Tone::Info, "No language model is set up.", text).with_fix(fix)]
        }
        Some(_) => Vec::new(),
    }
}

/// The user's own conversations, newest first.
async fn conversations(
    request: &ApiRequest<'_>,
    agent: Option<&Agent>,
) -> Result<Vec<Conversation>, Problem> {
    let Some(agent) = agent else { return Ok(Vec::new()) };
    let principal = request.principal()?.key();
    let query = SessionQuery { principal: Some(&principal), before: None, limit: MAX_CONVERSATIONS };
    let sessions = request.app.orchestrator.store().session_page(query).await?.sessions;
    let mut conversations = Vec::new();
    for session in sessions.iter().filter(|session| session.mode == Mode::Text) {
        if let Some(title) = title(agent, session).await? {
            let (id, created_at) = (session.id.clone(), session.created_at);
            conversations.push(Conversation { session: id, title, created_at });
        }
    }
    Ok(conversations)
}

/// The first words of the conversation; `None` if nothing has been said.
async fn title(agent: &Agent, session: &SessionRecord) -> Result<Option<String>, Problem> {
    let first = agent.events(&session.id, 0).await?.next().await?;
    Ok(first.and_then(|event| match event.body {
        EventBody::TurnStarted { message, .. } => {
            Some(message.to_text().chars().take(MAX_TITLE_CHARS).collect())
        }
        _ => None,
    }))
}

/// Calls to begin with.
fn suggestions(request: &ApiRequest<'_>, runtime: &Runtime) -> Result<Vec<String>, Problem> {
    let session = text_session(request)?;
    let calls = examples(request, runtime, &session).map(|(id, args)| format!("/{id} {args}"));
    Ok(calls.filter(|call| call.chars().count() <= MAX_SUGGESTION_CHARS).take(MAX_SUGGESTIONS).collect())
}

/// A session in text that the user could begin.
pub(super) fn text_session(request: &ApiRequest<'_>) -> Result<SessionRecord, Problem> {
    Ok(request.app.orchestrator.ephemeral_session(new_session(request.principal()?, Mode::Text)))
}

/// The first example of the documentation of each tool that changes nothing and that the session may use, with its
/// arguments.
pub(super) fn examples<'t>(
    request: &'t ApiRequest<'_>,
    runtime: &'t Runtime,
    session: &'t SessionRecord,
) -> impl Iterator<Item = (&'t str, Value)> {
    let toolset = runtime.toolset();
    let tools = toolset.for_mode(Mode::Text).take(MAX_EXAMINED).filter(|tool| {
        let is_harmless = matches!(tool.spec.side_effects, SideEffects::None | SideEffects::ReadOnly);
        is_harmless && request.app.orchestrator.is_visible(runtime, session, &tool.spec)
    });
    tools.filter_map(|tool| {
        let id = tool.spec.tool_id.as_str();
        Some((id, first_example(&toolset.documentation(id)?)?))
    })
}

/// The arguments of the first example.
fn first_example(documentation: &str) -> Option<Value> {
    let (_, examples) = documentation.split_once("## Examples")?;
    let (_, block) = examples.split_once("```json\n")?;
    let (text, _) = block.split_once("```")?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::first_example;

    #[test]
    fn a_suggestion_is_the_first_example_of_the_documentation() {
        let text =
            "# t\n```json\n{}\n```\n## Examples\nOne:\n```json\n{\n  \"a\": [1]\n}\n```\n```json\n{}\n```\n";
        assert_eq!(first_example(text), Some(json!({ "a": [1] })));
        assert_eq!(first_example("## Examples\n```json\n[1]\n```"), None);
        assert_eq!(first_example("## Examples\nNone."), None);
    }
}
