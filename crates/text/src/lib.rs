//! The `text.*` capability (docs/reference/capabilities.md, "Text"): pure functions on texts, always configured. A crate of its own,
//! since phone metadata and time zones are heavy to build. It must not know tools, sessions or the network.

mod address;
mod contacts;
mod datetime;
mod locale;

use std::future::ready;

use serde_json::Value;
use toolwright_capabilities::{Answer, Answered, Asker, Capability, Fault};

/// The longest text that is read; more has no place in one call.
const LONGEST: usize = 1 << 20;

/// All functions of `context.text`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

impl Capability for Text {
    fn call(&self, _: &Asker<'_>, function: &str, args: Vec<Value>) -> Answer {
        let answered = match function {
            "extractContacts" => return extract(args),
            "formatDatetime" => datetime::format(args.first().unwrap_or(&Value::Null)),
            "validateEmail" => text(&args).map(|email| address::validate(email).to_json()),
            _ => Err(Fault::new("NOT_CONFIGURED", format!("there is no function `text.{function}`"))),
        };
        Box::pin(ready(answered.map(Answered::from)))
    }
}

/// Reading a long text takes a while, and the first one loads the metadata: not on a thread that serves others.
fn extract(args: Vec<Value>) -> Answer {
    Box::pin(async move {
        let work = tokio::task::spawn_blocking(move || {
            let region = args.get(1).and_then(|options| options.get("region")).and_then(Value::as_str);
            let region = region.ok_or_else(|| invalid("`region` is a country's code such as \"DE\""))?;
            contacts::extract(text(&args)?, region)
        });
        let done = work.await.map_err(|_| Fault::new("INVALID_ARGUMENT", "the text could not be read"))?;
        done.map(Answered::from)
    })
}

fn text(args: &[Value]) -> Result<&str, Fault> {
    let text = args.first().and_then(Value::as_str).ok_or_else(|| invalid("the text is not a string"))?;
    if text.len() > LONGEST {
        return Err(invalid(&format!("the text has more than {LONGEST} bytes")));
    }
    Ok(text)
}

fn invalid(message: &str) -> Fault {
    Fault::new("INVALID_ARGUMENT", message)
}
