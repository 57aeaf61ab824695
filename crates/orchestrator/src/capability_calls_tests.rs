use serde_json::json;

use super::*;

fn spec(effects: &str, idempotent: bool) -> ToolSpec {
    serde_json::from_value(json!({
        "toolId": "act", "version": "1.0.0", "description": "Acts.", "category": "action", "sideEffects": effects,
        "idempotent": idempotent, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 100,
        "jsonSchema": { "type": "object" },
    }))
    .unwrap()
}

fn after(calls: &[(&str, bool, Result<Value, HostError>)]) -> CapabilityCalls {
    let mut record = CapabilityCalls::default();
    for (path, may_write, result) in calls {
        record.begin(*may_write);
        record.end(path, *may_write, result);
    }
    record
}

fn failed(code: &str) -> Result<Value, HostError> {
    Err(HostError::new(code, "internal detail"))
}

#[test]
fn an_uncaught_failure_keeps_its_kind() {
    use ErrorKind::{Auth, Conflict, NotFound, Permanent, RateLimit, Transient};
    for (path, code, kind, retryable, message) in [
        ("kb.search", "UNREACHABLE", Transient, true, "The knowledge base is unreachable."),
        ("http.fetch", "TIMEOUT", Transient, true, "The service did not respond in time."),
        ("messaging.send", "CLOSED", Transient, true, "The client is disconnected."),
        ("images.draft", "RATE_LIMIT", RateLimit, true, "The image service limits the request rate."),
        ("calendar.commit", "FORBIDDEN", Auth, false, "The calendar refused access."),
        ("calendar.getDraft", "NOT_FOUND", NotFound, false, "The calendar has no such object."),
        ("calendar.commit", "EXPIRED", Conflict, false, "The object has expired."),
        (
            "kb.get",
            "NOT_CONFIGURED",
            Permanent,
            false,
            "The knowledge base is not configured on this server.",
        ),
    ] {
        let failure =
            after(&[(path, false, failed(code))]).cause_of(Some(code), &spec("writes", false)).unwrap();
        let has_hint = failure.details().is_some_and(|details| details["retryAfterMs"] == 5000);
        assert_eq!(has_hint, kind == RateLimit, "{path} {code}");
        let seen = (failure.kind, failure.retryable, failure.partial_side_effects, failure.message.as_str());
        assert_eq!(seen, (kind, retryable, false, message), "{path} {code}");
    }
    // A wrong argument is named, with its value, by the capability.
    let error = HostError::new("INVALID_NAMESPACE", "`namespace` is moon; use studio, personal or public");
    let record = after(&[("kb.search", false, Err(error.clone()))]);
    let failure = record.cause_of(Some("INVALID_NAMESPACE"), &spec("read_only", true)).unwrap();
    assert_eq!((failure.kind, failure.message), (ErrorKind::Validation, error.message));
    // Errors of the handler, and codes that no capability has failed with.
    let record =
        after(&[("kb.get", false, failed("INVALID_ARGUMENT")), ("kb.get", false, failed("TIMEOUT"))]);
    for code in [Some("INVALID_ARGUMENT"), Some("UNREACHABLE"), None] {
        assert_eq!(record.cause_of(code, &spec("read_only", true)), None, "{code:?}");
    }
}

#[test]
fn effects_are_partial_only_if_a_call_may_have_written() {
    let sent = || ("calendar.commit", true, Ok(json!({})));
    let timeout = |path, may_write| (path, may_write, failed("TIMEOUT"));
    for (calls, idempotent, partial, retryable) in [
        (vec![timeout("kb.search", false)], false, false, true),
        (vec![timeout("calendar.commit", true)], false, true, false),
        (vec![timeout("calendar.commit", true)], true, true, true),
        (vec![("calendar.commit", true, failed("UNREACHABLE"))], false, false, true),
        (vec![sent(), ("messaging.send", true, failed("CLOSED"))], false, true, false),
    ] {
        let code = calls.last().unwrap().2.as_ref().unwrap_err().code.clone();
        let failure = after(&calls).cause_of(Some(&code), &spec("writes", idempotent)).unwrap();
        assert_eq!((failure.partial_side_effects, failure.retryable), (partial, retryable), "{calls:?}");
    }
    let failure = after(&[sent(), ("kb.get", false, failed("TIMEOUT"))])
        .cause_of(Some("TIMEOUT"), &spec("none", false));
    assert!(!failure.unwrap().partial_side_effects, "a tool that cannot write has no side effects");
}

#[test]
fn an_error_after_a_failing_response_is_that_of_the_service() {
    let response = |status: u64| Ok(json!({ "status": status, "headers": { "retry-after": "2" } }));
    let cause = |calls: &[_]| after(calls).cause_of(None, &spec("writes", false));
    let limited = cause(&[("http.fetch", false, response(429))]).unwrap();
    assert_eq!((limited.kind, limited.retryable), (ErrorKind::RateLimit, true));
    assert_eq!(limited.details(), Some(json!({ "retryAfterMs": 2000 })));
    let without_header = Ok(json!({ "status": 429, "headers": {} }));
    let limited = cause(&[("http.fetch", false, without_header)]).unwrap();
    assert_eq!(limited.details(), Some(json!({ "retryAfterMs": 5000 })));
    let down = cause(&[("http.fetch", true, response(503))]).unwrap();
    assert_eq!((down.kind, down.partial_side_effects, down.retryable), (ErrorKind::Transient, true, false));
    assert_eq!(cause(&[("http.fetch", false, response(404))]), None);
    assert_eq!(cause(&[("http.fetch", false, response(503)), ("kb.get", false, Ok(json!({})))]), None);
}

#[test]
fn only_writing_functions_methods_and_tools_may_write() {
    let effects = |tool: &str| (tool == "pay").then_some(SideEffects::Writes);
    let may = |path: &str, args: Value| may_write(path, args.as_array().unwrap(), effects);
    assert!(may("calendar.commit", json!([])) && !may("calendar.propose", json!([])));
    assert!(
        may("http.fetch", json!(["u", { "method": "post" }]))
            && !may("http.fetch", json!(["u", { "method": "head" }]))
    );
    assert!(!may("http.fetch", json!(["u"])));
    assert!(may("callTool", json!(["pay", {}])) && !may("callTool", json!(["look", {}])));
}
