//! One realm through several calls, without threads.
use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::*;
use crate::{
    call::{Host, HostError, HostFuture, Level, Limits},
    failure::Failure,
    host::CallHostParts,
    program::{Program, Source},
    task::Input,
    turn::{self, Progress},
};

struct PendingHost;

impl Host for PendingHost {
    fn call(&self, _path: &str, _args: Vec<Value>) -> HostFuture {
        Box::pin(std::future::pending())
    }

    fn call_sync(&self, _path: &str, _args: Vec<Value>) -> std::result::Result<Value, HostError> {
        panic!("a host that panics")
    }

    fn console(&self, _level: Level, _text: String) {}
}

fn program(body: &str) -> Arc<Program> {
    let text = format!("let n = 0; export async function execute({{ args, context }}) {{ n += 1; {body} }}");
    Arc::new(Program::new(
        "test".to_owned(),
        vec![Source { path: "handler.js".to_owned(), text: text.into() }],
    ))
}

fn functions() -> Vec<HostFunction> {
    vec![HostFunction::asynchronous("a.wait"), HostFunction::synchronous("a.log")]
}

/// One turn.
fn run(realm: &mut Realm, program: &Arc<Program>, memory_bytes: usize) -> Progress {
    let limits = Limits { memory_bytes, ..Limits::within(Duration::from_secs(60)) };
    let parts = CallHostParts {
        limits,
        stack_bytes: 256 << 10,
        functions: functions().into(),
        host: Arc::new(PendingHost),
        runtime: Handle::current(),
        seed: None,
    };
    let call_host = Arc::new(CallHost::new(parts, Weak::new()));
    let input = Input { program: program.clone(), args: json!({}), context: json!({ "x": [1] }), now: None };
    call_host.control.begin_turn();
    turn::start(realm, &call_host, &program.compiled().unwrap(), &input)
}

fn is_restored(realm: &Realm) -> bool {
    // SAFETY: nothing runs in the realm.
    unsafe { realm.memory.is_restored(realm.state()) }
}

#[tokio::test]
async fn a_realm_is_restored_after_settled_and_waiting_calls() {
    let mut realm = Realm::new(&functions()).unwrap();
    let settles = program("globalThis.kept = new Uint8Array(1 << 20); return n;");
    let waits = program("setTimeout(() => {}, 1000); await context.a.wait();");
    for _ in 0..20 {
        assert!(matches!(run(&mut realm, &settles, 64 << 20), Progress::Settled(Ok(n)) if n == 1));
        assert!(!is_restored(&realm));
        realm = realm.recycle().unwrap();
        assert!(is_restored(&realm));
        assert!(matches!(run(&mut realm, &waits, 64 << 20), Progress::Waiting));
        realm = realm.recycle().unwrap();
        assert!(is_restored(&realm));
    }
}

#[tokio::test]
async fn a_program_that_runs_twice_gets_a_primed_realm() {
    let mut realm = Realm::new(&functions()).unwrap();
    let (one, other) = (program("return n;"), program("return -n;"));
    let compiled = one.compiled().unwrap();
    for (program, match_score) in
        [(&one, 1), (&one, 2), (&one, 2), (&other, 1), (&one, 1), (&other, 1), (&one, 1), (&one, 2)]
    {
        let Progress::Settled(Ok(n)) = run(&mut realm, program, 64 << 20) else { panic!() };
        assert_eq!(n.as_i64().unwrap().abs(), 1);
        realm = realm.recycle().unwrap();
        assert_eq!(realm.match_score(&compiled), match_score);
        assert!(is_restored(&realm));
    }
}

#[tokio::test]
async fn a_realm_that_was_out_of_memory_is_not_used_again() {
    let greedy = program("const all = []; for (;;) all.push('x'.repeat(100000) + all.length);");
    let mut realm = Realm::new(&functions()).unwrap();
    assert!(matches!(run(&mut realm, &greedy, 8 << 20), Progress::Settled(Err(Failure::Memory))));
    assert!(realm.recycle().is_none());
    let mut realm = Realm::new(&functions()).unwrap();
    let late = realm.meter().shutoff();
    assert!(matches!(run(&mut realm, &program("return n;"), 8 << 20), Progress::Settled(Ok(_))));
    realm = realm.recycle().unwrap();
    // This was for the previous call.
    late.shut();
    assert!(matches!(run(&mut realm, &program("return n;"), 8 << 20), Progress::Settled(Ok(_))));
    realm.meter().shutoff().shut();
    assert!(realm.recycle().is_none());
}

#[tokio::test]
async fn a_panic_of_the_host_is_an_error_of_the_handler() {
    let mut realm = Realm::new(&functions()).unwrap();
    let program = program("try { context.a.log(); } catch (error) { return error.code; }");
    for _ in 0..3 {
        assert!(
            matches!(run(&mut realm, &program, 8 << 20), Progress::Settled(Ok(code)) if code == "INTERNAL")
        );
        realm = realm.recycle().unwrap();
    }
}

#[tokio::test]
async fn many_functions_get_a_larger_region() {
    let many: Vec<_> = (0..6000).map(|n| HostFunction::asynchronous(format!("f{n}"))).collect();
    let mut realm = Realm::new(&many).unwrap();
    let program = program("return Object.keys(context).length;");
    assert!(matches!(run(&mut realm, &program, 64 << 20), Progress::Settled(Ok(n)) if n == 6002));
    assert!(realm.recycle().is_some());
}
