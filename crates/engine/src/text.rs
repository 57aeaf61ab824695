//! JavaScript strings to Rust's. Lone surrogates, which UTF-8 cannot hold, become U+FFFD.
use rquickjs::{Ctx, Error, Object, Result, String as JsString, Value};

use crate::bridge::Bridge;

pub(crate) fn of<'js>(ctx: &Ctx<'js>, string: &JsString<'js>) -> Result<String> {
    match string.to_string() {
        Err(Error::Utf8(_)) => mended(ctx, string.as_value().clone()),
        // The engine had no memory for the copy; the exception is pending.
        Err(Error::Unknown) => Err(Error::Exception),
        other => other,
    }
}

/// A string with lone surrogates, without them.
pub(crate) fn mended<'js>(ctx: &Ctx<'js>, string: Value<'js>) -> Result<String> {
    match ctx.userdata::<Bridge<'js>>().map(|bridge| bridge.well_formed.clone()) {
        Some(well_formed) => well_formed.call::<_, JsString<'js>>((string,))?.to_string(),
        None => Ok(String::new()),
    }
}

/// A string member, read without letting a getter's exception out; `None` for anything else.
pub(crate) fn member<'js>(object: &Object<'js>, name: &str) -> Option<String> {
    let ctx = object.ctx();
    let read = object.get::<_, Value<'js>>(name).and_then(|value| match value.as_string() {
        Some(string) => of(ctx, string).map(Some),
        None => Ok(None),
    });
    read.unwrap_or_else(|_| {
        ctx.catch();
        None
    })
}
