//! Calls share no state, and cannot change the data that they are given.

use crate::support;
use std::sync::Arc;

use crate::support::{body, body_with, call, engine, options, program};
use serde_json::json;
use toolwright_engine::{Engine, HostFunction, Options};

const POLLUTE: &str = "
    let count = 0;
    globalThis.leak = 1; var hoisted = 1;
    export async function execute({ args, context }) {
      count += 1;
      if (args.pollute) {
        setTimeout(() => {}, 60000);
        Object.prototype.polluted = 1; Array.prototype.polluted = 1; Function.prototype.polluted = 1;
        Promise.prototype.polluted = 1; Error.prototype.polluted = 1; globalThis.polluted = 1;
        Array.prototype.map = () => 'stolen'; JSON.parse = () => 'stolen'; Promise.prototype.then = () => 'stolen';
        Object.freeze = (x) => x; Math.random = () => 4; Date.now = () => 4; Symbol.for('polluted').x;
        globalThis.URL = 1; globalThis.Promise = 1; delete globalThis.Map; URLSearchParams.prototype.x = 1;
      }
      return { count };
    }";

const PROBE: &str = "
    let count = 0;
    export async function execute({ args, context }) {
      count += 1;
      const names = ['polluted' in {}, 'polluted' in [], 'polluted' in (() => 1), 'polluted' in Promise.resolve(), 'polluted' in new Error(), 'polluted' in globalThis, 'leak' in globalThis];
      const kept = [[1].map((x) => x + 1)[0] === 2, JSON.parse('1') === 1, Object.isFrozen(context), Math.random() !== 4, Date.now() > 4, typeof Map, typeof URL, Promise.name, 'x' in URLSearchParams.prototype];
      return { count, names, kept };
    }";

#[tokio::test]
async fn ten_thousand_alternating_calls_share_no_state() {
    let engine = Arc::new(engine());
    let (pollute, probe) = (program(POLLUTE), program(PROBE));
    let clean = json!({
        "count": 1, "names": [false, false, false, false, false, false, false],
        "kept": [true, true, true, true, true, "function", "function", "Promise", false]
    });
    let mut lanes = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (engine, pollute, probe, clean) = (engine.clone(), pollute.clone(), probe.clone(), clean.clone());
        lanes.spawn(async move {
            for round in 0..1250 {
                let polluted = engine.run(call(&pollute, json!({ "pollute": true }))).await;
                assert_eq!(polluted, Ok(json!({ "count": 1 })), "{round}");
                assert_eq!(engine.run(call(&probe, json!({}))).await, Ok(clean.clone()), "{round}");
            }
        });
    }
    lanes.join_all().await;
}

#[tokio::test]
async fn the_context_is_deeply_frozen() {
    let source = "
        const attempts = [
          () => { context.mode = 'voice'; }, () => { context.added = 1; }, () => { delete context.mode; },
          () => { context.session.isActive = false; }, () => { context.session.state.deep.list[1].x = 2; },
          () => { context.session.state.deep.list.push(1); }, () => { context.kb.search = 1; },
          () => { context.kb.search.added = 1; }, () => { context.signal = 1; }, () => { context.signal.added = 1; },
          () => { Object.setPrototypeOf(context, {}); }, () => { context.tool.id = 'other'; },
          () => { Object.defineProperty(context.session, 'isActive', { value: false }); },
        ];
        const refused = attempts.map((attempt) => { try { attempt(); return 'done'; } catch (error) { return error.name; } });
        return { refused, mode: context.mode, active: context.session.isActive, x: context.session.state.deep.list[1].x };";
    let refused = vec!["TypeError"; 13];
    assert_eq!(body(source).await, Ok(json!({ "refused": refused, "mode": "text", "active": true, "x": 1 })));
}

#[tokio::test]
async fn proto_keys_in_arguments_stay_data() {
    let args: serde_json::Value =
        serde_json::from_str(r#"{"__proto__": {"isAdmin": true}, "constructor": {"prototype": {"isAdmin": true}}, "deep": [{"__proto__": {"isAdmin": 1}}], "toString": "x"}"#).unwrap();
    let handler = program("export async function execute({ args }) {
        return { plain: {}.isAdmin ?? null, own: Object.keys(args), admin: args.isAdmin ?? null, deep: args.deep[0].isAdmin ?? null,
          data: args['__proto__'], is: Object.getPrototypeOf(args) === Object.prototype, echo: args };
      }");
    let result = engine().run(call(&handler, args.clone())).await;
    let expected = json!({
        "plain": null, "own": ["__proto__", "constructor", "deep", "toString"], "admin": null, "deep": null,
        "data": { "isAdmin": true }, "is": true, "echo": args
    });
    assert_eq!(result, Ok(expected));
}

#[tokio::test]
async fn arguments_are_a_copy() {
    let engine = engine();
    let handler = program(
        "export async function execute({ args }) { args.list.push(args.list.length); args.added = true; return args; }",
    );
    let one = call(&handler, json!({ "list": [] }));
    for _ in 0..3 {
        assert_eq!(engine.run(one.clone()).await, Ok(json!({ "list": [0], "added": true })));
    }
}

#[tokio::test]
async fn there_is_no_ambient_authority() {
    let source = "
        const names = ['fetch', 'process', 'require', 'module', 'Deno', 'Bun', 'std', 'os', 'scriptArgs', 'print', 'load',
          'XMLHttpRequest', 'WebSocket', 'Worker', 'importScripts', 'setInterval', 'native', 'gc', 'navigator', 'window', 'global'];
        const attempts = [
          () => eval('1'), () => (0, eval)('1'), () => new Function('return 1')(), () => (() => {}).constructor('return 1')(),
          () => (async () => {}).constructor('return 1')(), () => (function* () {}).constructor('yield 1')(),
          () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100000),
        ];
        const refused = attempts.map((attempt) => { try { attempt(); return 'done'; } catch (error) { return error.name; } });
        return { found: names.filter((name) => name in globalThis), refused, meta: Object.keys(import.meta).length };";
    let result = body(source).await.unwrap();
    assert_eq!(result["found"], json!([]));
    assert!(result["refused"].as_array().unwrap().iter().all(|name| name != "done"), "{result}");
    assert_eq!(result["meta"], 0);
}

#[tokio::test]
async fn errors_do_not_give_access_to_other_realms() {
    let source = "
        const seen = [];
        try { await context.reject(); } catch (error) { seen.push(Object.keys(error).sort(), error instanceof Error, /0x|rust|\\.rs/i.test(error.stack)); }
        return seen;";
    assert_eq!(body(source).await, Ok(json!([[], true, false])));
}

#[tokio::test]
async fn a_context_without_data_still_has_its_functions() {
    let functions = vec![HostFunction::asynchronous("a.b.c"), HostFunction::synchronous("d")];
    let engine = Engine::new(Options { functions, ..options() });
    let handler = program(
        "export async function execute({ context }) { return [await context.a.b.c(1), context.d(), Object.keys(context)]; }",
    );
    let mut one = call(&handler, json!({}));
    one.context = json!(null);
    one.host =
        Arc::new(support::Stubs::default().with("a.b.c", |args| Box::pin(async move { Ok(json!(args)) })));
    assert_eq!(engine.run(one).await, Ok(json!([[1], null, ["a", "d", "signal"]])));
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
}
