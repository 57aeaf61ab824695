//! The `text` capability: pure functions on texts, always available. A crate of its own because phone metadata and time
//! zones are slow to build. It must not know tools, sessions or the network.

mod contacts;
mod datetime;
mod email;
mod locale;

use std::future::ready;

use serde_json::Value;
use toolwright_capabilities::{
    CallIdentity, Capability, CapabilityError, CapabilityFuture, CapabilityOutput,
};

/// The longest accepted text.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// All functions of `context.text`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

impl Capability for Text {
    fn call(&self, _: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let answered = match function {
            "extractContacts" => return extract(args),
            "formatDatetime" => datetime::format_datetime(args.first().unwrap_or(&Value::Null)),
            "validateEmail" => text(&args).map(|email| email::validate_email(email).to_json()),
            _ => Err(CapabilityError::not_configured(format!("`text.{function}` does not exist"))),
        };
        Box::pin(ready(answered.map(CapabilityOutput::from)))
    }
}

/// Runs on a blocking thread: a long text takes a while, and the first call loads the phone metadata.
fn extract(args: Vec<Value>) -> CapabilityFuture {
    Box::pin(async move {
        let work = tokio::task::spawn_blocking(move || {
            let region = args.get(1).and_then(|options| options.get("region")).and_then(Value::as_str);
            let region = region.ok_or_else(|| {
                CapabilityError::invalid("`region` must be a two-letter country code such as \"DE\"")
            })?;
            contacts::extract_contacts(text(&args)?, region)
        });
        let failed = |_| CapabilityError::invalid("`text.extractContacts` failed on this text");
        work.await.map_err(failed)?.map(CapabilityOutput::from)
    })
}

fn text(args: &[Value]) -> Result<&str, CapabilityError> {
    let text = args
        .first()
        .and_then(Value::as_str)
        .ok_or_else(|| CapabilityError::invalid("the first argument must be a string"))?;
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("the text has {} bytes; the maximum is {MAX_TEXT_BYTES}", text.len());
        return Err(CapabilityError::invalid(message));
    }
    Ok(text)
}

/// Whether a list of words has this one.
fn is_listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}
