//! Converts JavaScript strings to Rust strings. Lone surrogates, which UTF-8 cannot encode, become U+FFFD.
use rquickjs::{Ctx, Error, Object, Result, String as JsString, Value};

use super::bridge::bridge_of;

pub(crate) fn to_rust_string<'js>(ctx: &Ctx<'js>, string: &JsString<'js>) -> Result<String> {
    match string.to_string() {
        Err(Error::Utf8(_)) => to_well_formed(ctx, string.as_value().clone()),
        // Out of memory for the copy; the exception is pending.
        Err(Error::Unknown) => Err(Error::Exception),
        other => other,
    }
}

/// Replaces lone surrogates.
pub(crate) fn to_well_formed<'js>(ctx: &Ctx<'js>, string: Value<'js>) -> Result<String> {
    match bridge_of(ctx).map(|bridge| bridge.well_formed.clone()) {
        Ok(well_formed) => well_formed.call::<_, JsString<'js>>((string,))?.to_string(),
        Err(_) => Ok(String::new()),
    }
}

/// A string property; `None` for other values and if a getter throws.
pub(crate) fn member<'js>(object: &Object<'js>, name: &str) -> Option<String> {
    let ctx = object.ctx();
    let read = object.get::<_, Value<'js>>(name).and_then(|value| match value.as_string() {
        Some(string) => to_rust_string(ctx, string).map(Some),
        None => Ok(None),
    });
    read.unwrap_or_else(|_| {
        ctx.catch();
        None
    })
}

/// The lines of a stack without the frames of the engine's own modules, which have no file name.
pub(crate) fn handler_frames(stack: &str) -> String {
    let frames = stack.lines().filter(|line| !line.contains("<null>"));
    frames.map(|frame| format!("{frame}\n")).collect()
}
