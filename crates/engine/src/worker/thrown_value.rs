//! Converts a thrown value to a [`Failure`], with the handler's own texts only.
use rquickjs::{Ctx, Object, Type, Value};

use super::{json_out, text};
use crate::failure::{Failure, ToolErrorFields};

const MAX_TEXT: usize = 8192;
const MAX_DETAILS: usize = 64 << 10;

/// `out_of_memory`: the realm's allocator has refused, so even the error may be missing.
pub(crate) fn failure<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>, out_of_memory: bool) -> Failure {
    let Some(object) = thrown.as_object() else {
        // Out of memory, the engine throws null, or fails without an exception.
        let missing = thrown.type_of() == Type::Uninitialized;
        return match out_of_memory && (thrown.is_null() || missing) {
            true => Failure::Memory,
            false if missing => Failure::EngineLost,
            false => failure_of_primitive(ctx, thrown),
        };
    };
    let name = text::member(object, "name");
    let message = text::member(object, "message");
    let known = (name.as_deref(), message.as_deref().unwrap_or(""));
    match known {
        // The message may be missing too.
        (Some("InternalError"), _) if out_of_memory => Failure::Memory,
        (Some("RangeError"), "Maximum call stack size exceeded") if thrown.is_error() => Failure::Stack,
        (Some("ReferenceError" | "SyntaxError"), message) if is_load_error(message) => {
            Failure::Load(message.to_owned())
        }
        _ => Failure::Thrown {
            tool_error: tool_error(ctx, object, name.as_deref(), message.as_deref()),
            name: truncate(name.unwrap_or_else(|| "Object".to_owned())),
            message: truncate(message.unwrap_or_else(|| describe_object(ctx, object))),
            stack: truncate(text::handler_frames(&text::member(object, "stack").unwrap_or_default())),
            code: code(ctx, object),
        },
    }
}

/// QuickJS's messages for failed imports.
fn is_load_error(message: &str) -> bool {
    [
        "Error resolving module",
        "Error loading module",
        "Could not find export",
        "circular reference when looking",
    ]
    .iter()
    .any(|start| message.starts_with(start))
        || message.starts_with("export '") && message.contains("in module")
}

fn failure_of_primitive<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> Failure {
    let message = match thrown.as_string() {
        Some(string) => text::to_rust_string(ctx, string).unwrap_or_default(),
        None => match json_out::result(ctx, thrown, MAX_TEXT) {
            Ok(_) if thrown.is_undefined() => "undefined".to_owned(),
            Ok(json) => json.to_string(),
            Err(_) => thrown.type_name().to_owned(),
        },
    };
    Failure::Thrown {
        tool_error: None,
        code: None,
        name: thrown.type_name().to_owned(),
        message: truncate(message),
        stack: String::new(),
    }
}

/// The JSON of an object without a message.
fn describe_object<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> String {
    match json_out::result(ctx, object.as_value(), MAX_TEXT) {
        Ok(json) => json.to_string(),
        Err(_) => {
            ctx.catch();
            "an object".to_owned()
        }
    }
}

/// The `code` of an error, or of the error that caused it.
fn code<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Option<String> {
    let own = text::member(object, "code");
    let of_cause = || {
        let cause = object.get::<_, Value<'js>>("cause").unwrap_or_else(|_| ctx.catch());
        text::member(cause.as_object()?, "code")
    };
    own.or_else(of_cause).map(truncate)
}

fn tool_error<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    name: Option<&str>,
    message: Option<&str>,
) -> Option<Box<ToolErrorFields>> {
    if name != Some("ToolError") {
        return None;
    }
    Some(Box::new(ToolErrorFields {
        type_: text::member(object, "type")?,
        message: truncate(message.unwrap_or_default().to_owned()),
        retryable: flag(ctx, object, "retryable"),
        partial_side_effects: flag(ctx, object, "partialSideEffects"),
        idempotency_required: flag(ctx, object, "idempotencyRequired"),
        details: details(ctx, object),
    }))
}

fn flag<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> bool {
    let read = object.get::<_, Value<'js>>(name);
    let truth = read.map(|value| value.as_bool().unwrap_or(false));
    truth.unwrap_or_else(|_| {
        ctx.catch();
        false
    })
}

fn details<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Option<serde_json::Value> {
    let read = object.get::<_, Value<'js>>("details").map_err(json_out::ConvertError::from);
    match read.and_then(|value| json_out::result(ctx, &value, MAX_DETAILS)) {
        Ok(serde_json::Value::Null) => None,
        Ok(details) => Some(details),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

fn truncate(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    text
}
