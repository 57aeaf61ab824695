//! A worker is reused after a call. The next call sees nothing of it, whatever it has done.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::support::{Stubs, call, engine, host, program};
use serde_json::{Value, json};
use toolwright_engine::{Engine, Failure, HandlerCall, Program};

/// Everything that can be reached from the global object, with its attributes, as one text.
const FINGERPRINT: &str = "
    function walk(root, visit) {
      const seen = new Map([[root, 'globalThis']]);
      const queue = [root];
      for (let at = 0; at < queue.length; at += 1) {
        const object = queue[at];
        const next = (value, name) => {
          if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return;
          if (!seen.has(value)) { seen.set(value, `${seen.get(object)}.${name}`); queue.push(value); }
        };
        visit(object, seen);
        next(Object.getPrototypeOf(object), '[[proto]]');
        for (const key of Reflect.ownKeys(object)) {
          const { value, get, set } = Object.getOwnPropertyDescriptor(object, key);
          next(value, String(key)); next(get, `get ${String(key)}`); next(set, `set ${String(key)}`);
        }
      }
      for (const value of [[][Symbol.iterator](), new Map().entries(), new Set().values(), 'a'.matchAll(/a/g), (function* () {})(), (async () => {}), (async function* () {})()]) {
        if (!seen.has(Object.getPrototypeOf(value))) { seen.set(Object.getPrototypeOf(value), 'hidden'); visit(Object.getPrototypeOf(value), seen); }
      }
    }
    function shown(value, seen) {
      if ((typeof value === 'object' && value !== null) || typeof value === 'function') return seen.get(value) ?? typeof value;
      return typeof value === 'symbol' ? String(value) : `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`;
    }
    function fingerprint() {
      const lines = [];
      walk(globalThis, (object, seen) => {
        lines.push(`${seen.get(object)} ${Object.isExtensible(object)} ${Object.prototype.toString.call(object)}`);
        for (const key of Reflect.ownKeys(object)) {
          const { value, get, set, ...flags } = Object.getOwnPropertyDescriptor(object, key);
          const timing = key === 'timeOrigin';
          lines.push(`  ${String(key)} ${JSON.stringify(flags)} ${timing ? '' : shown(value, seen)} ${typeof get} ${typeof set}`);
        }
      });
      return lines.join('\\n');
    }
    let hash = (text) => { let sum = 7; for (let i = 0; i < text.length; i += 1) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0; return sum; };
";

/// Changes that a handler can make to its realm, by name.
const HARM: &str = "
    let count = 0; globalThis.leak = 1;
    const late = /a/g;
    const harm = {
      none() {},
      add() { walk(globalThis, (object) => { try { object.polluted = 1; object[Symbol.for('polluted')] = 1; } catch {} }); },
      replace() {
        const all = []; walk(globalThis, (object) => all.push(object));
        const { ownKeys, getOwnPropertyDescriptor } = Reflect;
        for (let i = 0; i < all.length; i += 1) for (let keys = ownKeys(all[i]), k = 0; k < keys.length; k += 1) {
          try { if (typeof getOwnPropertyDescriptor(all[i], keys[k]).value === 'function') all[i][keys[k]] = () => 'stolen'; } catch {}
        }
      },
      remove() {
        const all = []; walk(globalThis, (object) => all.push(object));
        const { ownKeys, deleteProperty } = Reflect;
        for (let i = 0; i < all.length; i += 1) for (let keys = ownKeys(all[i]), k = 0; k < keys.length; k += 1) {
          try { deleteProperty(all[i], keys[k]); } catch {}
        }
      },
      freeze() { const all = []; walk(globalThis, (object) => all.push(object)); const { freeze } = Object; for (let i = 0; i < all.length; i += 1) freeze(all[i]); },
      unproto() { const all = []; walk(globalThis, (object) => all.push(object)); const { setPrototypeOf } = Object; for (let i = 0; i < all.length; i += 1) { try { setPrototypeOf(all[i], null); } catch {} } },
      grow() { globalThis.kept = Array.from({ length: 20000 }, (_, i) => ({ [`k${i}`]: 'x'.repeat(i % 300) })); },
      weak() { globalThis.registry = new FinalizationRegistry(() => { globalThis.fired = 1; }); for (let i = 0; i < 50; i += 1) registry.register({}, i); globalThis.ref = new WeakRef({}); },
      later() { setTimeout(() => { throw new Error('late'); }, 1); Promise.reject(new Error('nobody')); new Promise(() => {}).then(() => {}); },
      regex() { late.exec('aaa'); /(?<x>b)/.exec('abc'); 'abc'.replace(/b/g, 'c'); },
    };
    export async function execute({ args, context }) {
      count += 1;
      const before = hash(fingerprint());
      if (args.print) return fingerprint();
      const state = [count, late.lastIndex, typeof globalThis.kept, typeof globalThis.fired, 'polluted' in {}];
      const answer = { before, state };
      harm[args.harm]();
      if (args.end === 'throw') throw new Error(JSON.stringify(answer));
      if (args.end === 'wait') { context.audit.log(answer); await context.never(); }
      if (args.end === 'spin') { context.audit.log(answer); for (;;) {} }
      if (args.end === 'memory') { context.audit.log(answer); const all = []; for (;;) all.push(new Uint8Array(1 << 20)); }
      if (args.end === 'stack') { context.audit.log(answer); const f = () => 1 + f(); f(); }
      if (args.end === 'never') { context.audit.log(answer); await new Promise(() => {}); }
      return answer;
    }";

fn harmful() -> Arc<Program> {
    program(&format!("{FINGERPRINT}{HARM}"))
}

fn one(program: &Arc<Program>, args: Value) -> (HandlerCall, Arc<Stubs>) {
    let stubs = Arc::new(host());
    let mut one = call(program, args);
    one.host = stubs.clone();
    one.limits.cpu = Duration::from_secs(20);
    (one, stubs)
}

const CLEAN: [&str; 2] = ["undefined", "undefined"];

fn check(answer: &Value, first: &Value, label: &str) {
    assert_eq!(answer["before"], *first, "{label}");
    assert_eq!(answer["state"], json!([1, 0, CLEAN[0], CLEAN[1], false]), "{label}");
}

#[tokio::test]
async fn changes_do_not_affect_the_next_call() {
    let engine = engine();
    let program = harmful();
    let first = engine.run(one(&program, json!({ "harm": "none" })).0).await.unwrap()["before"].clone();
    let print = engine.run(one(&program, json!({ "print": true })).0).await.unwrap();
    assert!(print.as_str().unwrap().lines().count() > 1000, "the walk reaches too little");
    for round in 0..3 {
        for harm in
            ["add", "replace", "remove", "freeze", "unproto", "grow", "weak", "later", "regex", "none"]
        {
            let answer = engine.run(one(&program, json!({ "harm": harm })).0).await;
            check(&answer.unwrap(), &first, &format!("round {round}, before {harm}"));
            let after = engine.run(one(&program, json!({ "harm": "none" })).0).await;
            check(&after.unwrap(), &first, &format!("round {round}, after {harm}"));
        }
    }
}

/// Runs a call that fails in the given way.
async fn ended(engine: &Engine, program: &Arc<Program>, end: &str) -> Value {
    let (mut call, stubs) = one(program, json!({ "harm": "add", "end": end }));
    match end {
        "spin" => call.limits.cpu = Duration::from_millis(300),
        "memory" => call.limits.memory_bytes = 32 << 20,
        _ => {}
    }
    let cancel = call.cancel.clone();
    let watched = stubs.clone();
    let cancelling = async move {
        while end == "wait" && watched.calls.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if end == "wait" {
            cancel.cancel();
        }
    };
    let (result, ()) = tokio::join!(engine.run(call), cancelling);
    let expected = match end {
        "throw" => {
            let Err(Failure::Thrown { message, .. }) = result else { panic!("{result:?}") };
            return serde_json::from_str(&message).unwrap();
        }
        "wait" => Failure::Cancelled,
        "spin" => Failure::CpuTime,
        "memory" => Failure::Memory,
        "stack" => Failure::Stack,
        _ => Failure::NeverSettles,
    };
    assert_eq!(result, Err(expected));
    let calls = stubs.calls.lock().unwrap();
    calls.iter().find(|(path, _)| path == "audit.log").unwrap().1[0].clone()
}

#[tokio::test]
async fn nothing_is_left_after_every_kind_of_end() {
    let engine = engine();
    let program = harmful();
    let first = engine.run(one(&program, json!({ "harm": "none" })).0).await.unwrap()["before"].clone();
    for round in 0..2 {
        for end in ["throw", "wait", "spin", "memory", "stack", "never"] {
            check(&ended(&engine, &program, end).await, &first, &format!("round {round}, in {end}"));
            let after = engine.run(one(&program, json!({ "harm": "none" })).0).await.unwrap();
            check(&after, &first, &format!("round {round}, after {end}"));
        }
    }
}

#[tokio::test]
async fn timers_and_finalizers_of_a_call_do_not_reach_the_next() {
    let engine = engine();
    let leaving = program(
        "export async function execute({ context }) {
        setTimeout(() => context.audit.log('late'), 5);
        new FinalizationRegistry(() => context.audit.log('late')).register({}, 1);
        context.later(5).then(() => context.audit.log('late'));
        return 1;
      }",
    );
    let staying = program(
        "export async function execute({ context }) {
        const kept = [];
        for (let i = 0; i < 30; i += 1) { kept.push(Array.from({ length: 2000 }, () => ({}))); await context.later(1); }
        return kept.length;
      }",
    );
    for _ in 0..3 {
        let (first, first_host) = one(&leaving, json!({}));
        let (second, second_host) = one(&staying, json!({}));
        assert_eq!(engine.run(first).await, Ok(json!(1)));
        assert_eq!(engine.run(second).await, Ok(json!(30)));
        for stubs in [first_host, second_host] {
            assert!(!stubs.calls.lock().unwrap().iter().any(|(path, _)| path == "audit.log"));
        }
    }
}

#[tokio::test]
async fn random_numbers_and_clocks_do_not_repeat() {
    let engine = engine();
    let draw = program(
        "const early = Math.random();
        export async function execute() { return [early, Math.random(), crypto.randomUUID(), performance.timeOrigin, crypto.getRandomValues(new Uint32Array(2)).join(), performance.now()]; }",
    );
    let mut drawn = HashSet::new();
    for _ in 0..100 {
        let answer = engine.run(one(&draw, json!({})).0).await.unwrap();
        for at in [0, 1, 2, 4] {
            assert!(drawn.insert(answer[at].to_string()), "{} came twice", answer[at]);
        }
        // Since the start of the call, not of the realm.
        assert!(answer[5].as_f64().unwrap() < 20_000.0, "{answer}");
        assert!(answer[3].as_f64().unwrap() > 1.7e12, "{answer}");
    }
}

#[tokio::test]
async fn programs_can_alternate() {
    let engine = engine();
    let source = |name: &str| {
        format!(
            "import {{ ErrorType }} from '../_core/error-types.js'; let count = 0; ErrorType.count ??= 0;
            export async function execute() {{ count += 1; ErrorType.count += 1; return ['{name}', count, ErrorType.count]; }}"
        )
    };
    let programs: Vec<_> = ["a", "b", "c"].into_iter().map(|name| (name, program(&source(name)))).collect();
    for at in 0..200 {
        // In sequence, alternating, and at random.
        let (name, program) = &programs[[at / 5, at, at * at / 7][at / 70] % 3];
        assert_eq!(engine.run(one(program, json!({})).0).await, Ok(json!([name, 1, 1])), "{at}");
    }
}

#[tokio::test]
async fn freed_memory_is_reused() {
    let engine = engine();
    let looping = program(
        "export async function execute({ args }) {
        let sum = 0;
        for (let i = 0; i < 300; i += 1) {
          const size = args.sizes[i % args.sizes.length];
          sum += new Uint8Array(size).length + 'x'.repeat(size).length + Array.from({ length: 20 }, () => ({ i })).length;
        }
        return sum > 0;
      }",
    );
    for sizes in [json!([700, 5000, 40_000, 200_000]), json!([1_000_000, 600]), json!([39_000, 41_000])] {
        let mut one = one(&looping, json!({ "sizes": sizes })).0;
        one.limits.memory_bytes = 6 << 20;
        one.limits.deadline = std::time::Instant::now() + Duration::from_secs(120);
        assert_eq!(engine.run(one).await, Ok(json!(true)), "{sizes}");
    }
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn thousands_of_calls_need_no_more_memory_than_hundreds() {
    let engine = engine();
    let mixed = program(
        "export async function execute({ args, context }) {
        const cycle = { url: new URL('http://example.com/?a=1'), list: Array.from({ length: 500 }, (_, i) => ({ i })) };
        cycle.self = cycle; globalThis.kept = cycle;
        context.later(1);
        if (args.n % 3 === 0) await context.echo(1);
        if (args.n % 5 === 0) throw new Error('again');
        if (args.n % 50 === 0) 'x'.repeat(2 ** 28);
        if (args.n % 70 === 0) globalThis.large = new Uint8Array(8 << 20).fill(1);
        return args.n;
      }",
    );
    let mut after_hundreds = 0;
    for n in 0..4000 {
        let _ = engine.run(call(&mixed, json!({ "n": n }))).await;
        if n == 1000 {
            after_hundreds = resident_kilobytes();
        }
    }
    let grown = resident_kilobytes().saturating_sub(after_hundreds);
    assert!(grown < 16 << 10, "grown by {grown} kB");
}
