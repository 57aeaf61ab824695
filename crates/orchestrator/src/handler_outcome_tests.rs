use serde_json::json;

use super::*;

fn limits() -> engine::Limits {
    engine::Limits::within(std::time::Duration::ZERO)
}

fn outcome(result: Result<Value, engine::Failure>) -> Result<Success, Failure> {
    normalise(result, SideEffects::Writes, &limits()).outcome
}

#[test]
fn what_a_handler_returns_as_agreed_is_kept() {
    let success = outcome(Ok(
        json!({"ok": true, "data": {"a": 1}, "intents": [{"type": "SUPPRESS_AUDIO", "value": true}]}),
    ));
    assert_eq!(
        success,
        Ok(Success {
            data: json!({"a": 1}).into(),
            intents: vec![json!({"type": "SUPPRESS_AUDIO", "value": true})]
        })
    );
    assert_eq!(outcome(Ok(json!({"ok": true}))), Ok(Success::default()));
    let failure = outcome(Ok(
        json!({"ok": false, "error": {"type": "CONFLICT", "message": "taken", "retryable": true}}),
    ));
    assert_eq!(failure, Err(Failure { retryable: true, ..Failure::new(ErrorKind::Conflict, "taken") }));
}

#[test]
fn nonsense_becomes_an_internal_error_that_says_nothing_of_its_insides() {
    let nonsense = [
        json!(null),
        json!(42),
        json!("done"),
        json!([]),
        json!({}),
        json!({"ok": 1}),
        json!({"success": true}),
        json!({"ok": false}),
        json!({"ok": false, "error": "secret"}),
        json!({"ok": false, "error": {"type": "NO_SUCH", "message": "secret"}}),
        json!({"ok": false, "error": {"type": "CONFLICT"}}),
        json!({"ok": true, "intents": {}}),
        json!({"ok": true, "intents": [{"value": 1}]}),
    ];
    for value in nonsense {
        let failure = outcome(Ok(value.clone())).unwrap_err();
        assert_eq!((failure.kind, failure.partial_side_effects), (ErrorKind::Internal, true), "{value}");
        assert!(!failure.message.contains("secret"), "{value}");
    }
}

#[test]
fn a_thrown_tool_error_keeps_its_fields_and_anything_else_leaks_nothing() {
    let fields = engine::ToolErrorFields {
        type_: "TRANSIENT".to_owned(),
        message: "later".to_owned(),
        retryable: true,
        ..Default::default()
    };
    let throw = |tool_error| engine::Failure::Thrown {
        tool_error,
        code: None,
        name: "Error".to_owned(),
        message: "password=hunter2".to_owned(),
        stack: String::new(),
    };
    let kept = Failure { retryable: true, ..Failure::new(ErrorKind::Transient, "later") };
    assert_eq!(outcome(Err(throw(Some(Box::new(fields))))), Err(kept));
    let normalised = normalise(Err(throw(None)), SideEffects::None, &limits());
    let failure = normalised.outcome.unwrap_err();
    assert_eq!((failure.kind, failure.partial_side_effects), (ErrorKind::Internal, false));
    assert!(!failure.message.contains("hunter2"));
    assert!(normalised.detail.unwrap().contains("hunter2"), "the log has the detail");
}

#[test]
fn a_stopped_call_may_have_had_effects_only_if_the_tool_writes() {
    for (effects, partial) in [(SideEffects::Writes, true), (SideEffects::ReadOnly, false)] {
        for failure in [engine::Failure::Deadline, engine::Failure::CpuTime, engine::Failure::Memory] {
            let failure = normalise(Err(failure), effects, &limits()).outcome.unwrap_err();
            assert_eq!(failure.partial_side_effects, partial, "{failure:?}");
        }
    }
    let late = outcome(Err(engine::Failure::Deadline)).unwrap_err();
    assert_eq!((late.kind, late.retryable), (ErrorKind::Transient, false));
}

#[test]
fn an_exceeded_limit_is_named_with_its_value_and_for_the_operator_with_its_setting() {
    for (failure, message, setting) in [
        (engine::Failure::CpuTime, "its limit of 1000 ms of CPU time", "`[handlers] cpu_ms`"),
        (engine::Failure::Memory, "its limit of 64 MB of memory", "`[handlers] memory_mb`"),
        (engine::Failure::OutputTooLarge, "its limit of 1024 KB for a result", "`[handlers] output_kb`"),
        (engine::Failure::TooManyHostCalls, "its limit of 64 capability calls", "`[handlers] pending_calls`"),
    ] {
        let HandlerOutcome { outcome, detail } = normalise(Err(failure), SideEffects::None, &limits());
        assert!(outcome.as_ref().unwrap_err().message.contains(message), "{outcome:?}");
        assert!(detail.as_ref().unwrap().contains(setting), "{detail:?}");
    }
}

#[test]
fn the_detail_of_a_thrown_error_has_its_type_code_message_and_stack() {
    let thrown = engine::Failure::Thrown {
        tool_error: None,
        code: Some("UNREACHABLE".to_owned()),
        name: "Error".to_owned(),
        message: "could not connect to api.example.com".to_owned(),
        stack: "    at execute (handler.js:3:40)\n".to_owned(),
    };
    let detail = normalise(Err(thrown), SideEffects::None, &limits()).detail.unwrap();
    let expected = "the handler threw Error (UNREACHABLE): could not connect to api.example.com\n    \
        at execute (handler.js:3:40)";
    assert_eq!(detail, expected);
}

#[test]
fn a_problem_of_an_output_names_its_place_and_value() {
    let schema = json!({ "type": "object", "additionalProperties": false, "required": ["total"],
        "properties": { "order_id": { "type": "string" }, "lines": { "type": "array" }, "total": {},
            "state": { "type": "string", "enum": ["open", "paid"] } } });
    let output = Validator::compile(&schema).unwrap();
    for (data, expected) in [
        (json!({ "order_id": 12, "total": 1 }), "/order_id must be string, got 12"),
        (json!({ "lines": {}, "total": 1 }), "/lines must be array, got an object"),
        (json!({ "order": 1, "total": 1 }), "the data must not have `order`"),
        (
            json!({ "state": "lost" }),
            "the data must have required property 'total'; \
             /state must be equal to one of the allowed values: [\"open\",\"paid\"], got \"lost\"",
        ),
    ] {
        assert_eq!(output_problems(&output, &data), expected);
    }
}
