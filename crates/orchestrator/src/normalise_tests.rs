use serde_json::json;

use super::*;

fn outcome(result: Result<Value, engine::Failure>) -> Result<Success, Failure> {
    normalise(result, SideEffects::Writes).outcome
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
        name: "Error".to_owned(),
        message: "password=hunter2".to_owned(),
        stack: String::new(),
    };
    let kept = Failure { retryable: true, ..Failure::new(ErrorKind::Transient, "later") };
    assert_eq!(outcome(Err(throw(Some(Box::new(fields))))), Err(kept));
    let normalised = normalise(Err(throw(None)), SideEffects::None);
    let failure = normalised.outcome.unwrap_err();
    assert_eq!((failure.kind, failure.partial_side_effects), (ErrorKind::Internal, true));
    assert!(!failure.message.contains("hunter2"));
    assert!(normalised.detail.unwrap().contains("hunter2"), "the log has the detail");
}

#[test]
fn a_stopped_call_may_have_had_effects_only_if_the_tool_writes() {
    for (effects, partial) in [(SideEffects::Writes, true), (SideEffects::ReadOnly, false)] {
        for failure in [engine::Failure::Deadline, engine::Failure::CpuTime, engine::Failure::Memory] {
            let failure = normalise(Err(failure), effects).outcome.unwrap_err();
            assert_eq!(failure.partial_side_effects, partial, "{failure:?}");
        }
    }
    let late = outcome(Err(engine::Failure::Deadline)).unwrap_err();
    assert_eq!((late.kind, late.retryable), (ErrorKind::Transient, false));
}
