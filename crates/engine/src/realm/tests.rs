//! One realm, call after call, without threads.
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
    program::{Program, Source},
    side::Parts,
    task::Input,
    turn::{self, Progress},
};

struct Nobody;

impl Host for Nobody {
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

fn functions() -> Vec<Function> {
    vec![Function::asynchronous("a.wait"), Function::synchronous("a.log")]
}

/// One turn.
fn run(realm: &mut Realm, program: &Arc<Program>, memory_bytes: usize) -> Progress {
    let limits = Limits { memory_bytes, ..Limits::within(Duration::from_secs(60)) };
    let parts = Parts {
        limits,
        stack_bytes: 256 << 10,
        functions: functions().into(),
        host: Arc::new(Nobody),
        runtime: Handle::current(),
        seed: None,
    };
    let side = Arc::new(Side::new(parts, Weak::new()));
    let input = Input { program: program.clone(), args: json!({}), context: json!({ "x": [1] }), now: None };
    side.control.begin_turn();
    turn::start(realm, &side, &program.compiled().unwrap(), &input)
}

fn is_restored(realm: &Realm) -> bool {
    // SAFETY: nothing runs in the realm.
    unsafe { realm.memory.is_restored(realm.state()) }
}

#[tokio::test]
async fn a_realm_is_put_back_after_calls_that_settle_and_calls_that_wait() {
    let mut realm = Realm::new(&functions()).unwrap();
    let settles = program("globalThis.kept = new Uint8Array(1 << 20); return n;");
    let waits = program("setTimeout(() => {}, 1000); await context.a.wait();");
    for _ in 0..20 {
        assert!(matches!(run(&mut realm, &settles, 64 << 20), Progress::Settled(Ok(n)) if n == 1));
        assert!(!is_restored(&realm));
        realm = realm.recycled().unwrap();
        assert!(is_restored(&realm));
        assert!(matches!(run(&mut realm, &waits, 64 << 20), Progress::Waiting));
        realm = realm.recycled().unwrap();
        assert!(is_restored(&realm));
    }
}

#[tokio::test]
async fn a_program_that_calls_again_finds_its_modules_read() {
    let mut realm = Realm::new(&functions()).unwrap();
    let (one, other) = (program("return n;"), program("return -n;"));
    let compiled = one.compiled().unwrap();
    for (program, suits) in
        [(&one, 1), (&one, 2), (&one, 2), (&other, 1), (&one, 1), (&other, 1), (&one, 1), (&one, 2)]
    {
        let Progress::Settled(Ok(n)) = run(&mut realm, program, 64 << 20) else { panic!() };
        assert_eq!(n.as_i64().unwrap().abs(), 1);
        realm = realm.recycled().unwrap();
        assert_eq!(realm.suits(&compiled), suits);
        assert!(is_restored(&realm));
    }
}

#[tokio::test]
async fn a_realm_that_was_out_of_memory_is_not_used_again() {
    let greedy = program("const all = []; for (;;) all.push('x'.repeat(100000) + all.length);");
    let mut realm = Realm::new(&functions()).unwrap();
    assert!(matches!(run(&mut realm, &greedy, 8 << 20), Progress::Settled(Err(Failure::Memory))));
    assert!(realm.recycled().is_none());
    let mut realm = Realm::new(&functions()).unwrap();
    let late = realm.meter().valve();
    assert!(matches!(run(&mut realm, &program("return n;"), 8 << 20), Progress::Settled(Ok(_))));
    realm = realm.recycled().unwrap();
    // Meant for the call before.
    late.shut();
    assert!(matches!(run(&mut realm, &program("return n;"), 8 << 20), Progress::Settled(Ok(_))));
    realm.meter().valve().shut();
    assert!(realm.recycled().is_none());
}

#[tokio::test]
async fn a_panic_of_the_host_stays_outside_the_realm() {
    let mut realm = Realm::new(&functions()).unwrap();
    let program = program("try { context.a.log(); } catch (error) { return error.code; }");
    for _ in 0..3 {
        assert!(
            matches!(run(&mut realm, &program, 8 << 20), Progress::Settled(Ok(code)) if code == "INTERNAL")
        );
        realm = realm.recycled().unwrap();
    }
}

#[tokio::test]
async fn many_functions_get_a_larger_region() {
    let many: Vec<_> = (0..6000).map(|n| Function::asynchronous(format!("f{n}"))).collect();
    let mut realm = Realm::new(&many).unwrap();
    let program = program("return Object.keys(context).length;");
    assert!(matches!(run(&mut realm, &program, 64 << 20), Progress::Settled(Ok(n)) if n == 6002));
    assert!(realm.recycled().is_some());
}
