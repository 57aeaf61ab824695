//! Tools that are one HTTP request: templates are filled with the arguments, the response becomes the tool's data. The
//! request obeys the same allow list as `http.fetch`.

#![expect(clippy::disallowed_methods, reason = "header values of HTTP tools name environment variables")]

use std::collections::BTreeSet;
use std::env;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use toolwright_contract::{ErrorKind, Failure, SideEffects, Success, arguments};
use toolwright_registry::http_tool::{HttpTool, Template, TemplatePart};

use super::run_until_deadline;
use crate::capability_calls::{DEFAULT_RETRY_AFTER_MS, retry_after};
use crate::handler_outcome::HandlerOutcome;
use crate::host::call_capability;
use crate::invocation::Invocation;
use crate::redaction;

/// All but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The most characters of an error response in `details`.
const MAX_EXCERPT_CHARS: usize = 500;

/// A declared request and the values of its variables.
pub(crate) struct Request {
    tool: HttpTool,
    variables: Map<String, Value>,
    /// The values of the variables, which must not appear in any output.
    secrets: Vec<String>,
    placed: BTreeSet<String>,
}

impl Request {
    /// Reads the variables that the templates name; the error is the name of one that is not set.
    pub fn prepare(tool: &HttpTool) -> Result<Self, String> {
        let named = tool.query.iter().flatten().chain(&tool.headers);
        let mut variables = Map::new();
        for name in named.flat_map(|(_, template)| template.variables()) {
            let value = env::var(name).map_err(|_| name.to_owned())?;
            variables.insert(name.to_owned(), value.into());
        }
        let secrets = variables.values().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Self { placed: tool.template_arguments(), tool: tool.clone(), variables, secrets })
    }

    /// The arguments of `http.fetch`.
    fn fill(&self, args: &Map<String, Value>, key: &str) -> Result<[Value; 2], Failure> {
        let mut url = format!("{}{}", self.tool.origin, self.path(args)?);
        let query = self.query(args);
        if !query.is_empty() {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&query.join("&"));
        }
        let mut headers = Map::new();
        for (name, template) in &self.tool.headers {
            if let Some(value) = self.text(template, args) {
                headers.insert(name.clone(), value.into());
            }
        }
        let mut init = json!({ "method": self.tool.method });
        if let Some(body) = self.body(args) {
            // Tells the service that a resend is the same request.
            if !headers.keys().any(|name| name.eq_ignore_ascii_case("idempotency-key")) {
                headers.insert("idempotency-key".to_owned(), key.into());
            }
            init["body"] = body;
        }
        init["headers"] = headers.into();
        Ok([url.into(), init])
    }

    fn path(&self, args: &Map<String, Value>) -> Result<String, Failure> {
        let mut path = String::new();
        for piece in self.tool.path.pieces() {
            match piece {
                TemplatePart::Text(text) => path.push_str(text),
                TemplatePart::Variable(_) => {}
                TemplatePart::Argument(name) => {
                    let value = args
                        .get(name)
                        .and_then(to_url_text)
                        .filter(|value| !matches!(value.as_str(), "" | "." | ".."));
                    let Some(value) = value else {
                        let message = format!("`{name}` must be a non-empty text that is not `.` or `..`.");
                        return Err(Failure::new(ErrorKind::Validation, message)
                            .suggest(format!("Send another value for `{name}`.")));
                    };
                    path.extend(utf8_percent_encode(&value, ENCODED));
                }
            }
        }
        Ok(path)
    }

    fn query(&self, args: &Map<String, Value>) -> Vec<String> {
        let pair = |name: &str, value: &str| {
            format!("{}={}", utf8_percent_encode(name, ENCODED), utf8_percent_encode(value, ENCODED))
        };
        let listed = |name: &str, value: &Value| match value {
            Value::Array(items) => {
                items.iter().filter_map(to_url_text).map(|item| pair(name, &item)).collect()
            }
            value => to_url_text(value).map(|value| pair(name, &value)).into_iter().collect::<Vec<_>>(),
        };
        match &self.tool.query {
            Some(declared) => declared
                .iter()
                .flat_map(|(name, template)| match template.only_argument() {
                    Some(argument) => args.get(argument).map(|value| listed(name, value)).unwrap_or_default(),
                    None => self.text(template, args).map(|value| pair(name, &value)).into_iter().collect(),
                })
                .collect(),
            None if self.tool.sends_body() || self.tool.body.is_some() => Vec::new(),
            None => {
                self.arguments_without_place(args).flat_map(|(name, value)| listed(name, value)).collect()
            }
        }
    }

    fn body(&self, args: &Map<String, Value>) -> Option<Value> {
        match &self.tool.body {
            Some(template) => self.value(template, args),
            None if self.tool.sends_body() => {
                let rest =
                    self.arguments_without_place(args).map(|(name, value)| (name.clone(), value.clone()));
                Some(Value::Object(rest.collect()))
            }
            None => None,
        }
    }

    fn arguments_without_place<'a>(
        &'a self,
        args: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> {
        args.iter().filter(|(name, _)| !self.placed.contains(*name))
    }

    /// A body's template filled with the arguments; absent arguments are left out.
    fn value(&self, template: &Value, args: &Map<String, Value>) -> Option<Value> {
        Some(match template {
            Value::String(text) => {
                let template = Template::parse(text);
                match template.only_argument() {
                    Some(name) => args.get(name)?.clone(),
                    None => self.text(&template, args)?.into(),
                }
            }
            Value::Array(items) => items.iter().filter_map(|item| self.value(item, args)).collect(),
            Value::Object(members) => {
                let filled =
                    |(name, member): (&String, &Value)| Some((name.clone(), self.value(member, args)?));
                Value::Object(members.iter().filter_map(filled).collect())
            }
            other => other.clone(),
        })
    }

    /// `None` if an argument is missing.
    fn text(&self, template: &Template, args: &Map<String, Value>) -> Option<String> {
        let mut text = String::new();
        for piece in template.pieces() {
            match piece {
                TemplatePart::Text(plain) => text.push_str(plain),
                TemplatePart::Argument(name) => text.push_str(&to_url_text(args.get(name)?)?),
                TemplatePart::Variable(name) => text.push_str(self.variables.get(name)?.as_str()?),
            }
        }
        Some(text)
    }
}

/// A value as it is written in a URL or a header.
fn to_url_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

pub(super) async fn run(invocation: &Arc<Invocation>, request: &Request, args: Value) -> HandlerOutcome {
    let args = args.as_object().cloned().unwrap_or_default();
    let [url, init] = match request.fill(&args, &invocation.idempotency_key()) {
        Ok(filled) => filled,
        Err(failure) => return HandlerOutcome { outcome: Err(failure), detail: None },
    };
    let fetch = call_capability(invocation, "http.fetch", vec![url, init]);
    let answer = match run_until_deadline(invocation, fetch).await {
        Ok(answer) => answer,
        Err(stopped) => return stopped,
    };
    let writes = invocation.spec().side_effects == SideEffects::Writes;
    match answer {
        Ok(mut answer) => {
            // A service may echo its request.
            redaction::scrub_value(&mut answer, &request.secrets);
            HandlerOutcome { outcome: outcome(&answer, &request.tool, writes), detail: None }
        }
        Err(error) => {
            let outcome = Err(no_response(&error.code, writes));
            HandlerOutcome { outcome, detail: Some(format!("{}: {}", error.code, error.message)) }
        }
    }
}

/// The failure of a request without a response. It may have taken effect if it was sent.
fn no_response(code: &str, writes: bool) -> Failure {
    let transient =
        |message: &str| Failure { retryable: true, ..Failure::new(ErrorKind::Transient, message) };
    match code {
        "UNREACHABLE" => transient("The service is unreachable."),
        "TIMEOUT" => {
            Failure { partial_side_effects: writes, ..transient("The service did not respond in time.") }
        }
        _ => Failure::new(ErrorKind::Permanent, "The request to the service was not allowed.")
            .suggest("Tell the user that this tool is not configured correctly."),
    }
}

fn outcome(answer: &Value, tool: &HttpTool, writes: bool) -> Result<Success, Failure> {
    let status = answer["status"].as_u64().unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(error_status(status, answer, writes));
    }
    let whole = match &answer["json"] {
        Value::Null => match answer["body"].as_str() {
            None | Some("") => Value::Null,
            Some("null") => Value::Null,
            Some(text) => json!({ "text": text }),
        },
        json => exact_json(answer).unwrap_or_else(|| json.clone()),
    };
    let data = match &tool.data {
        Some(pointer) => whole.pointer(pointer).cloned().ok_or_else(|| Failure {
            partial_side_effects: writes,
            ..Failure::new(
                ErrorKind::Permanent,
                "The response of the service has no data at the expected place.",
            )
        })?,
        None => whole,
    };
    Ok(data.into())
}

/// The body again, if it has whole numbers beyond 64 bits: they become strings, since a number would be rounded.
fn exact_json(answer: &Value) -> Option<Value> {
    let quoted = arguments::quote_long_integers(answer["body"].as_str()?)?;
    serde_json::from_str(&quoted).ok()
}

pub(crate) fn error_status(status: u64, answer: &Value, writes: bool) -> Failure {
    let (kind, retryable) = match status {
        401 | 403 => (ErrorKind::Auth, false),
        404 | 410 => (ErrorKind::NotFound, false),
        409 => (ErrorKind::Conflict, false),
        429 => (ErrorKind::RateLimit, true),
        408 | 500.. => (ErrorKind::Transient, true),
        _ => (ErrorKind::Permanent, false),
    };
    let text = answer["body"].as_str().unwrap_or_default();
    let excerpt: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    let mut details = json!({ "status": status, "body": excerpt });
    let default = (kind == ErrorKind::RateLimit).then_some(DEFAULT_RETRY_AFTER_MS);
    if let Some(wait) = retry_after(answer).or(default) {
        details["retryAfterMs"] = wait.into();
    }
    Failure {
        retryable,
        // A server that failed may have done part of the work.
        partial_side_effects: writes && status >= 500,
        details: Some(Box::new(details)),
        ..Failure::new(kind, format!("The service responded with status {status}."))
    }
}
