//! `/tools/{toolId}`: one tool, and calls of it from a form. A call takes the same path as any other.

use serde_json::{Map, Value, json};
use toolwright_console::call_list::CallRow;
use toolwright_console::format::{bytes, duration, shorten, url_part};
use toolwright_console::markdown::Markdown;
use toolwright_console::parameters::parameter_rows;
use toolwright_console::parts::{Chip, Choice, Code, Notice, Tone};
use toolwright_console::recipe::curl_call;
use toolwright_console::schema_form::{FormValues, build, decode};
use toolwright_console::tool_page::{
    LossRow, ProviderView, Tab, TabContent, ToolPage, TryContent, TryResult,
};
use toolwright_console::{Layout, Page};
use toolwright_contract::{Envelope, ErrorKind, Mode, ToolSpec};
use toolwright_orchestrator::store::{AuditFilter, AuditQuery, Backend};
use toolwright_providers::PROVIDERS;
use toolwright_registry::toolset::Tool;

use super::calls_page::{self, call_address, row};
use super::own_call::OwnCall;
use super::{base_url, form, layout, own_call, page, refused_page, tool_test};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};
use crate::rest::audience::Audience;
use crate::rest::call_history::visible_to;
use crate::rest::tools::{find as find_tool, parse_mode};

/// The most bytes of a documentation that a page shows, and of a call that a page has for saving or copying it.
const MAX_DOCUMENTATION: usize = 256 << 10;
const MAX_TEST: usize = 64 << 10;
/// The most characters of a summary and of a chip, and the most chips for tags.
const MAX_SUMMARY: usize = 500;
const MAX_CHIP: usize = 60;
const MAX_TAGS: usize = 30;
/// How many calls are shown.
const CALLS: usize = 5;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [tab, args, mode, saved] = request.query(["tab", "args", "mode", "saved"])?;
    let audience = Audience::of_console(&request)?;
    let tool = find(&audience, request.parameter)?;
    let tab = tab.as_deref().and_then(Tab::from_word).unwrap_or(Tab::Try);
    let content = match tab {
        Tab::Try => {
            let args = args.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let begin = FormValues::from_args(args.unwrap_or_else(|| Value::Object(Map::new())));
            let mode = mode.as_deref().map(parse_mode).transpose()?;
            let mut content = try_content(&request, tool, &begin, &[], mode);
            let file = saved.and_then(|name| tool_test::saved(&request, tool, &name));
            content.notices.extend(file.map(|file| Notice::new(Tone::Ok, "The test is saved.", file)));
            content.calls = recent_calls(&request, tool).await?;
            TabContent::Try(Box::new(content))
        }
        Tab::Documentation => {
            let documentation = audience.runtime.toolset().documentation(&tool.spec.tool_id);
            let text = documentation.as_deref().unwrap_or(&tool.spec.description);
            let (text, is_cut) = Markdown::limited(text, MAX_DOCUMENTATION);
            TabContent::Documentation { text, whole: is_cut.then(|| record_address(&request, tool)) }
        }
        Tab::Parameters => TabContent::Parameters {
            rows: parameter_rows(&tool.spec.json_schema),
            schema: Code::json("JSON Schema of the arguments", &tool.spec.json_schema)
                .with_whole(record_address(&request, tool)),
            output: tool.spec.output.as_ref().map(|output| {
                Code::json("JSON Schema of the result", output).with_whole(record_address(&request, tool))
            }),
        },
        Tab::Models => TabContent::Models {
            prompt_line: Code::new(
                "Line in the prompt",
                format!("**{}** ({}): {}", tool.spec.tool_id, tool.spec.category, tool.summary),
            ),
            views: PROVIDERS.iter().map(|provider| provider_view(provider, &tool.spec)).collect(),
        },
    };
    page(&tool_page(&request, tool, tab, content).await?)
}

/// `POST /tools/{toolId}/try`: calls the tool with the arguments of the form, or with its JSON.
pub(crate) async fn try_it(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read(&mut request).await?;
    let audience = Audience::of_console(&request)?;
    let tool = find(&audience, request.parameter)?;
    let mode = parse_mode(form.required("mode")?)?;
    let is_json = form.get("from") == Some("json");
    let json_text = form.get("json").unwrap_or_default();
    let read = match is_json {
        true => serde_json::from_str(json_text).map(FormValues::from_args).map_err(|error| error.to_string()),
        false => Ok(decode(&tool.spec.json_schema, form.fields())),
    };
    let decoded = match read {
        Ok(decoded) => decoded,
        Err(error) => {
            let mut content = try_content(&request, tool, &FormValues::from_args(json!({})), &[], Some(mode));
            content.json = json_text.to_owned();
            content.json_error = Some(format!("This must be JSON: {error}."));
            return refused_page(&try_page(&request, tool, content).await?);
        }
    };
    let made = match decoded.rejected.is_empty() {
        true => Some(own_call::call(&request, &tool.spec.tool_id, decoded.args.clone(), mode).await?),
        false => None,
    };
    let errors = made.as_ref().map(|made| validation_errors(&made.envelope)).unwrap_or_default();
    let mut content = try_content(&request, tool, &decoded, &errors, Some(mode));
    if let Some(made) = &made {
        let result = result(&request, tool, &decoded.args, mode, made);
        if result.expect_json.len() + result.args_json.len() > MAX_TEST {
            let limit = bytes(MAX_TEST as u64);
            let reason = format!("Arguments and result of a saved test may have {limit}: these have more.");
            content.cannot_save = content.cannot_save.or(Some(reason));
        }
        content.result = Some(result);
    }
    let is_refused = made.is_none() || !errors.is_empty();
    let view = try_page(&request, tool, content).await?;
    if is_refused { refused_page(&view) } else { page(&view) }
}

async fn try_page(
    request: &ApiRequest<'_>,
    tool: &Tool,
    mut content: TryContent,
) -> Result<ToolPage, Problem> {
    content.calls = recent_calls(request, tool).await?;
    tool_page(request, tool, Tab::Try, TabContent::Try(Box::new(content))).await
}

/// The last calls of the tool that this user may see.
async fn recent_calls(request: &ApiRequest<'_>, tool: &Tool) -> Result<Vec<CallRow>, Problem> {
    let filter = AuditFilter {
        calls_only: true,
        tool: Some(tool.spec.tool_id.clone()),
        principal: visible_to(request)?,
        ..AuditFilter::default()
    };
    let query = AuditQuery { filter, before: None, limit: CALLS };
    let found = request.app.orchestrator.store().audit_page(&query).await?;
    Ok(found.entries.iter().map(|found| row(&found.entry)).collect())
}

/// The address of all that the API says of the tool.
fn record_address(request: &ApiRequest<'_>, tool: &Tool) -> String {
    let all = if request.is_admin() { "?all=true" } else { "" };
    format!("/v1/tools/{}{all}", url_part(&tool.spec.tool_id))
}

/// The tool, if the caller may see it.
pub(super) fn find<'t>(audience: &'t Audience<'_>, id: &str) -> Result<&'t Tool, Problem> {
    find_tool(&audience.tools(), id)
}

async fn tool_page(
    request: &ApiRequest<'_>,
    tool: &Tool,
    tab: Tab,
    content: TabContent,
) -> Result<ToolPage, Problem> {
    let spec = &tool.spec;
    let layout = layout(request, Page::Tools, spec.tool_id.as_str()).await?;
    Ok(ToolPage {
        layout: Layout { scripts: &["tool_form.js"], ..layout },
        id: spec.tool_id.clone(),
        summary: shorten(&tool.summary, MAX_SUMMARY),
        category: spec.category.as_str().to_owned(),
        properties: properties(spec),
        tab,
        content,
    })
}

fn properties(spec: &ToolSpec) -> Vec<Chip> {
    let plain = |text: String| Chip::new(Tone::Plain, text);
    let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
    let budget = spec.latency_budget_ms.as_f64().unwrap_or_default();
    let mut chips = vec![plain(spec.side_effects.as_str().to_owned())];
    chips.extend((!spec.requires_confirmation.is_never()).then(|| Chip::new(Tone::Warn, "asks first")));
    chips.extend(spec.idempotent.then(|| plain("idempotent".to_owned())));
    chips.push(plain(format!("in {}", modes.join(", "))));
    chips.push(plain(format!("budget {}", duration(budget))));
    chips.push(plain(spec.version.clone()));
    // A tag may have the name of a mode, or of an effect.
    let tag = |tag: &String| plain(format!("#{}", shorten(tag, MAX_CHIP)));
    chips.extend(spec.tags.iter().take(MAX_TAGS).map(tag));
    chips
}

fn try_content(
    request: &ApiRequest<'_>,
    tool: &Tool,
    begin: &FormValues,
    errors: &[(String, String)],
    mode: Option<Mode>,
) -> TryContent {
    let mode = mode.or(tool.spec.allowed_modes.first().copied()).unwrap_or(Mode::Text);
    TryContent {
        form: build(&tool.spec.json_schema, begin, errors),
        modes: Mode::WORDS.iter().map(|word| Choice::new(*word, *word, Some(mode.as_str()))).collect(),
        json: toolwright_console::format::pretty(&begin.args),
        json_error: None,
        notices: Vec::new(),
        result: None,
        cannot_save: tool_test::place(request, tool).err(),
        calls: Vec::new(),
    }
}

fn result(request: &ApiRequest<'_>, tool: &Tool, args: &Value, mode: Mode, made: &OwnCall) -> TryResult {
    let envelope = &made.envelope;
    let outcome = envelope.outcome.as_ref().map_or_else(|failure| failure.kind.as_str(), |_| "ok");
    let body = json!({ "args": args, "mode": mode });
    // The serialization of the envelope itself has no token.
    let value = serde_json::to_value(&**envelope).unwrap_or_default();
    TryResult {
        outcome: Chip::outcome(outcome),
        duration_ms: envelope.meta.duration,
        execution_id: envelope.meta.execution_id.clone(),
        href: call_address(&made.session, &envelope.meta.execution_id),
        envelope: Code::json("Envelope", &value)
            .with_whole(calls_page::record_address(&made.session, &envelope.meta.execution_id)),
        curl: Some(curl_call(&base_url(request), !request.app.auth.is_open(), &tool.spec.tool_id, &body))
            .filter(|command| command.len() <= MAX_TEST),
        args_json: args.to_string(),
        mode: mode.as_str().to_owned(),
        expect_json: tool_test::expectation(&value).to_string(),
        is_waiting: outcome == ErrorKind::ConfirmationRequired.as_str(),
    }
}

/// The errors of a refused call, by the JSON pointer of the argument that each is about.
fn validation_errors(envelope: &std::sync::Arc<Envelope>) -> Vec<(String, String)> {
    let Err(failure) = &envelope.outcome else { return Vec::new() };
    let details = failure.details().unwrap_or_default();
    let errors = details.get("errors").unwrap_or(&details).as_array().cloned().unwrap_or_default();
    let place = |error: &Value| {
        let pointer = error["instancePath"].as_str()?;
        // A missing member is shown where it should be entered.
        let missing = error["params"]["missingProperty"].as_str().map(|name| format!("/{}", escape(name)));
        let message = error["message"].as_str()?.to_owned();
        Some((format!("{pointer}{}", missing.unwrap_or_default()), message))
    };
    errors.iter().filter_map(place).collect()
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn provider_view(provider: &toolwright_providers::Provider, spec: &ToolSpec) -> ProviderView {
    let view = provider.view([spec]);
    let loss = |loss: &toolwright_providers::Loss| LossRow {
        path: if loss.path.is_empty() { "/".to_owned() } else { loss.path.clone() },
        note: loss.note.clone(),
    };
    ProviderView {
        title: provider.title.to_owned(),
        declaration: Code::json(format!("Declaration for {}", provider.title), &view.declarations),
        losses: view.losses.iter().map(loss).collect(),
    }
}
