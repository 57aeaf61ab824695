//! Parts of requests that several transports write.

use serde_json::{Map, Value};
use toolwright_providers::{Call, Provider, ToolResult, provider};

use crate::event::{InputPart, ProviderData};
use crate::message::{Part, Step, ToolPart};

/// A picture of a user message.
pub(crate) enum Image<'a> {
    Url(&'a str),
    /// Media type and base64 data.
    Data(&'a str, &'a str),
}

pub(crate) fn image(url: &str) -> Image<'_> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    data.map_or(Image::Url(url), |(media_type, data)| Image::Data(media_type, data))
}

/// The parts of a user message, each in the provider's form.
pub(crate) fn user_parts(
    parts: &[InputPart],
    text: fn(&str) -> Value,
    image: fn(&str) -> Value,
) -> Vec<Value> {
    let part = |part: &InputPart| match part {
        InputPart::Text { text: content } => text(content),
        InputPart::Image { url } => image(url),
    };
    parts.iter().map(part).collect()
}

/// The name of a called tool in a form that the provider accepts; models also call tools that do not exist.
pub(crate) fn wire_name<'a>(provider: &Provider, name: &'a str) -> &'a str {
    if provider.accepts_name(name) { name } else { "unknown_tool" }
}

/// The arguments as an object. Invalid arguments are not sent back: the call's result is an error that quotes them.
pub(crate) fn wire_args(tool: &ToolPart) -> Value {
    if tool.call.args.is_object() { tool.call.args.clone() } else { Value::Object(Map::new()) }
}

/// The data of a part, if it belongs to this provider.
pub(crate) fn own_data<'a>(data: Option<&'a ProviderData>, provider: &str) -> Option<&'a Value> {
    data.filter(|data| data.provider == provider).map(|data| &data.value)
}

/// The text of a step.
pub(crate) fn text_of(step: &Step) -> String {
    let texts = step.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The messages with the results of all calls of a step, in the provider's form.
pub(crate) fn results(name: &str, step: &Step) -> Vec<Value> {
    let Ok(provider) = provider(name) else { return Vec::new() };
    let calls: Vec<(Call, &Value)> = step
        .tools()
        .map(|tool| {
            let name = wire_name(provider, &tool.call.tool).to_owned();
            let call = Call { id: Some(tool.call.id.clone()), name, arguments: Ok(Value::Null) };
            (call, tool.model_content())
        })
        .collect();
    let results: Vec<ToolResult<'_>> =
        calls.iter().map(|(call, content)| ToolResult::from_model_value(call, content)).collect();
    provider.write(&results)
}
