//! The handlers that declared tools of type `builtin` and `internal` can name in every program: functions over the
//! capabilities of the call. docs/reference/builtin-handlers.md lists their arguments and data.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode, SideEffects, Success};
use toolwright_engine::HostError;

use crate::capability_calls;
use crate::context::Context;
use crate::engine::http::error_status;
use crate::engine::native::{self, Handler};
use crate::kb_in_voice::FULL_TEXT;

type Outcome = Result<Success, Failure>;

/// How far ahead times are proposed if no end is given.
const DEFAULT_WINDOW: TimeDelta = TimeDelta::days(7);

/// All of them, by name. A test compares the names with those of the contract.
pub(crate) fn handlers() -> HashMap<String, Handler> {
    [
        ("clock.now", native::handler(clock_now)),
        ("kb.search", native::handler(kb_search)),
        ("kb.get", native::handler(kb_get)),
        ("calendar.propose", native::handler(calendar_propose)),
        ("http.request", native::handler(http_request)),
    ]
    .into_iter()
    .map(|(name, handler)| (name.to_owned(), handler))
    .collect()
}

async fn clock_now(args: Value, context: Context) -> Outcome {
    let now = now(&context)?;
    let request = json!({
        "instant": rfc3339(now),
        "timezone": args.get("timezone").unwrap_or(&json!("UTC")),
        "style": args.get("style").unwrap_or(&json!("long")),
        "locale": args.get("locale").unwrap_or(&json!("en-US")),
    });
    let mut data = call(&context, "text.formatDatetime", vec![request]).await?;
    snake_case(&mut data);
    data["unix_ms"] = now.timestamp_millis().into();
    Ok(data.into())
}

async fn kb_search(args: Value, context: Context) -> Outcome {
    let omitted = omitted_fields(&args, &context);
    let mut results = call(&context, "kb.search", vec![camel_case(args)]).await?;
    results.as_array_mut().into_iter().flatten().for_each(snake_case);
    let mut data = json!({ "results": results });
    data.as_object_mut().into_iter().for_each(|data| data.extend(omitted.clone()));
    Ok(data.into())
}

async fn kb_get(args: Value, context: Context) -> Outcome {
    let omitted = omitted_fields(&args, &context);
    let mut found = call(&context, "kb.get", vec![camel_case(args)]).await?;
    snake_case(&mut found);
    found["records"].as_array_mut().into_iter().flatten().for_each(snake_case);
    found.as_object_mut().into_iter().for_each(|found| found.extend(omitted.clone()));
    Ok(found.into())
}

/// The member of the data that says which requested fields are not in it: in voice, a snippet takes the place of the
/// whole text.
fn omitted_fields(args: &Value, context: &Context) -> Option<(String, Value)> {
    let asks = args["return_fields"].as_array().is_some_and(|fields| fields.iter().any(|f| f == FULL_TEXT));
    (asks && context.mode() == Mode::Voice).then(|| ("omitted_fields".to_owned(), json!([FULL_TEXT])))
}

async fn calendar_propose(args: Value, context: Context) -> Outcome {
    let Value::Object(mut request) = camel_case(args) else { return Err(invalid("the arguments")) };
    let start = match request.get("windowStart").and_then(Value::as_str) {
        Some(text) => DateTime::parse_from_rfc3339(text).map_err(|_| invalid("`window_start`"))?.to_utc(),
        None => now(&context)?,
    };
    request.insert("windowStart".to_owned(), rfc3339(start).into());
    request.entry("windowEnd").or_insert_with(|| rfc3339(start + DEFAULT_WINDOW).into());
    request.entry("preferredTimes").or_insert_with(|| json!([]));
    request.entry("timezone").or_insert_with(|| "UTC".into());
    let mut proposal = call(&context, "calendar.propose", vec![Value::Object(request)]).await?;
    snake_case(&mut proposal);
    for (index, slot) in proposal["slots"].as_array_mut().into_iter().flatten().enumerate() {
        slot["index"] = index.into();
    }
    Ok(proposal.into())
}

async fn http_request(args: Value, context: Context) -> Outcome {
    let Value::Object(mut init) = camel_case(args) else { return Err(invalid("the arguments")) };
    let url = init.remove("url").unwrap_or_default();
    let mut response = call(&context, "http.fetch", vec![url, Value::Object(init)]).await?;
    let status = response["status"].as_u64().unwrap_or_default();
    if status >= 400 {
        let writes = context.tool().side_effects == SideEffects::Writes;
        return Err(error_status(status, &response, writes));
    }
    // The body once: parsed if it is JSON.
    if let Value::Object(members) = &mut response {
        let superfluous =
            if members.get("json").is_some_and(|json| !json.is_null()) { "body" } else { "json" };
        members.remove(superfluous);
    }
    Ok(response.into())
}

async fn call(context: &Context, path: &str, args: Vec<Value>) -> Result<Value, Failure> {
    let tool = context.tool();
    let writes = tool.side_effects == SideEffects::Writes;
    context.call(path, args).await.map_err(|error| {
        tracing::warn!(tool = tool.tool_id, "{path} failed: {}: {}", error.code, error.message);
        let failure = failure(path, error, writes);
        // A request that may have had its effect is repeated only if the tool is idempotent.
        let retryable = failure.retryable && (!failure.partial_side_effects || tool.idempotent);
        Failure { retryable, ..failure }
    })
}

/// The failure that a capability's error means for the model: the one of a JavaScript handler that does not catch it.
fn failure(path: &str, error: HostError, writes: bool) -> Failure {
    if let Some(failure) = capability_calls::failure(path, &error) {
        return Failure { partial_side_effects: writes && error.code == "TIMEOUT", ..failure };
    }
    match error.code.as_str() {
        // The arguments are the model's: there is no handler that could be to blame.
        "INVALID_ARGUMENT" => Failure::new(ErrorKind::Validation, error.message),
        "NOT_ALLOWED" => {
            let message = format!("`{path}` cannot be used: {}.", error.message);
            let failure = Failure::new(ErrorKind::Permanent, message);
            failure.suggest("Tell the user that this tool is not configured for this.")
        }
        _ => Failure { partial_side_effects: writes, ..Failure::unforeseen("The tool failed unexpectedly.") },
    }
}

fn invalid(name: &str) -> Failure {
    Failure::new(ErrorKind::Validation, format!("{name} cannot be used."))
}

/// The time of the call.
fn now(context: &Context) -> Result<DateTime<Utc>, Failure> {
    let milliseconds = context.0.now.unwrap_or_else(|| context.0.orchestrator.0.clock.now());
    DateTime::from_timestamp_millis(milliseconds)
        .ok_or_else(|| Failure::unforeseen("The clock is out of range."))
}

fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Arguments of tools are snake_case, those of capabilities camelCase. Only the names of the object itself change.
fn camel_case(args: Value) -> Value {
    rename(args, |name| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let mut characters = word.chars();
            let first = characters.next().map(|c| c.to_ascii_uppercase());
            name + &first.into_iter().chain(characters).collect::<String>()
        })
    })
}

fn snake_case(value: &mut Value) {
    *value = rename(value.take(), |name| {
        name.chars().fold(String::new(), |mut name, c| {
            if c.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
            name
        })
    });
}

fn rename(value: Value, new_name: impl Fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => {
            let renamed = members.into_iter().map(|(name, value)| (new_name(&name), value));
            Value::Object(renamed.collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_contract::BUILTIN_HANDLERS;

    #[test]
    fn the_contract_names_every_builtin_handler() {
        let mut names: Vec<String> = handlers().into_keys().collect();
        names.sort();
        assert_eq!(names, BUILTIN_HANDLERS);
    }

    #[test]
    fn names_change_their_case_and_values_stay() {
        let args = json!({ "top_k": 3, "query": "a_b", "filters": { "date_range": {} } });
        let request = json!({ "topK": 3, "query": "a_b", "filters": { "date_range": {} } });
        assert_eq!(camel_case(args.clone()), request);
        let mut back = request;
        snake_case(&mut back);
        assert_eq!(back, args);
    }

    #[test]
    fn a_back_end_has_the_same_name_in_every_failure() {
        for code in ["TIMEOUT", "UNREACHABLE", "RATE_LIMIT", "FORBIDDEN", "NOT_CONFIGURED"] {
            let error = HostError::new(code, "internal detail");
            let failure = failure("kb.search", error.clone(), false);
            assert_eq!(Some(&failure), capability_calls::failure("kb.search", &error).as_ref());
            assert!(failure.message.starts_with("The knowledge base "), "{}", failure.message);
        }
    }

    #[test]
    fn a_failed_capability_says_whether_a_retry_helps() {
        let kinds = [
            ("TIMEOUT", ErrorKind::Transient, true),
            ("RATE_LIMIT", ErrorKind::RateLimit, true),
            ("INVALID_NAMESPACE", ErrorKind::Validation, false),
            ("NOT_ALLOWED", ErrorKind::Permanent, false),
            ("SURPRISE", ErrorKind::Internal, false),
        ];
        for (code, kind, retryable) in kinds {
            let failure = failure("kb.search", HostError::new(code, "m"), false);
            assert_eq!(
                (failure.kind, failure.retryable, failure.partial_side_effects),
                (kind, retryable, false)
            );
        }
    }
}
