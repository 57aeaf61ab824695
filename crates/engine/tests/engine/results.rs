//! Results: settled values, thrown values, and modules that cannot be loaded.

use crate::support::{body, body_with, call, engine, modules, program};
use serde_json::{Value, json};
use toolwright_engine::{Failure, ToolErrorFields};

#[tokio::test]
async fn values_are_converted_like_json() {
    let engine = engine();
    let table = [
        ("return undefined;", json!(null)),
        ("", json!(null)),
        ("return null;", json!(null)),
        ("return 7;", json!(7)),
        ("return -0;", json!(0)),
        ("return 1.5;", json!(1.5)),
        ("return 2 ** 53;", json!(9_007_199_254_740_992_i64)),
        ("return 1e300;", json!(1e300)),
        ("return [NaN, Infinity, -Infinity];", json!([null, null, null])),
        ("return 'ÄÖ😀\\u0000x';", json!("ÄÖ😀\u{0}x")),
        ("return ['\\ud800', { '\\udc00k': 1 }];", json!(["\u{fffd}", { "\u{fffd}k": 1 }])),
        ("return { a: undefined, b: () => 1, c: Symbol('x'), d: 1 };", json!({ "d": 1 })),
        ("return [undefined, () => 1, Symbol('x')];", json!([null, null, null])),
        ("return [1,,3];", json!([1, null, 3])),
        ("return new Date(0);", json!("1970-01-01T00:00:00.000Z")),
        ("return { d: new Date(NaN) };", json!({ "d": null })),
        ("return { toJSON(key) { return { key, of: this.x }; }, x: 1 };", json!({ "key": "", "of": 1 })),
        (
            "return { m: { toJSON(key) { return key; } }, l: [{ toJSON(key) { return key; } }] };",
            json!({ "m": "m", "l": ["0"] }),
        ),
        ("return { m: { toJSON() { return undefined; } } };", json!({})),
        ("return new Map([[1, 2]]);", json!({})),
        ("return new Set([1]);", json!({})),
        ("return new Uint8Array([1, 2]);", json!({ "0": 1, "1": 2 })),
        ("return Object.create({ inherited: 1 });", json!({})),
        ("return Object.defineProperty({}, 'hidden', { value: 1 });", json!({})),
        ("return { get a() { return 1; } };", json!({ "a": 1 })),
        ("return { '': 1, '2': 2, '1': 1 };", json!({ "1": 1, "2": 2, "": 1 })),
        ("return JSON.parse('{\"__proto__\": 1}');", json!({ "__proto__": 1 })),
        ("return new Proxy({ a: 1 }, {});", json!({ "a": 1 })),
        // Unlike JSON.stringify: a proxy of an array is converted as an object.
        ("return new Proxy([1, 2], {});", json!({ "0": 1, "1": 2 })),
        ("return new Error('x');", json!({})),
        ("return Promise.resolve(Promise.resolve(3));", json!(3)),
        ("return { then(resolve) { resolve('thenable'); } };", json!("thenable")),
        ("const shared = { x: 1 }; return [shared, shared];", json!([{ "x": 1 }, { "x": 1 }])),
    ];
    for (source, expected) in table {
        assert_eq!(body_with(&engine, source).await, Ok(expected), "{source}");
    }
}

/// Lists of records are built property by property, which must not change values or their order.
#[tokio::test]
async fn lists_of_records_are_converted_completely() {
    let engine = engine();
    let alike = |at: u32| json!({ "id": at, "of": { "b": [at, { "c": at }], "a": null }, "__proto__": at, "2": "two", "1": "one" });
    let lists = [
        json!([alike(0), alike(1), alike(2)]),
        json!([[alike(0), alike(1)], [alike(2), alike(3)]]),
        json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }]),
        json!([{ "a": 1 }, { "a": 1, "b": 2 }, { "a": 1 }]),
        json!([{ "a": { "x": 1 } }, { "a": { "y": 1 } }, { "a": 7 }]),
        json!([{ "a": 1 }, null, { "a": 1 }]),
        json!([{}, {}]),
        json!([]),
    ];
    let handler = program(
        "export const execute = ({ args }) => ({ args, text: JSON.stringify(args.list), own: Object.keys(args.list[0] ?? {}).length });",
    );
    for list in lists {
        let result = engine.run(call(&handler, json!({ "list": list }))).await.unwrap();
        assert_eq!(result["args"]["list"], list);
        let text: Value = serde_json::from_str(result["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, list);
        assert_eq!(
            result["own"],
            list[0].as_object().map_or(list[0].as_array().map_or(0, Vec::len), serde_json::Map::len)
        );
    }
}

/// The context is frozen, including lists of records.
#[tokio::test]
async fn lists_of_records_in_the_context_are_frozen() {
    let handler = program(
        "export const execute = ({ context }) => context.records.map((one) => Object.isFrozen(one) && Object.isFrozen(one.in));",
    );
    let mut one = call(&handler, json!({}));
    one.context = json!({ "records": [{ "in": { "x": 1 } }, { "in": { "x": 2 } }] });
    assert_eq!(engine().run(one).await, Ok(json!([true, true])));
}

#[tokio::test]
async fn values_that_are_not_json_are_refused() {
    let engine = engine();
    for source in [
        "return 1n;",
        "return { a: [1n] };",
        "return () => 1;",
        "return Symbol('x');",
        "const a = []; a.push(a); return a;",
        "const a = {}; a.b = { c: a }; return a;",
        "let a = []; for (let i = 0; i < 200; i += 1) a = [a]; return a;",
        "const f = () => ({ toJSON: f2 }); const f2 = () => { const o = {}; o.o = o; return o; }; return f();",
    ] {
        let result = body_with(&engine, source).await;
        assert!(matches!(result, Err(Failure::BadResult(_))), "{source}: {result:?}");
    }
    let nested = "let a = 1; for (let i = 0; i < 127; i += 1) a = [a]; return a;";
    assert!(body_with(&engine, nested).await.is_ok());
}

fn thrown(name: &str, message: &str) -> Option<(String, String)> {
    Some((name.to_owned(), message.to_owned()))
}

#[tokio::test]
async fn thrown_values_keep_their_texts() {
    let engine = engine();
    let table = [
        ("throw new Error('plain');", thrown("Error", "plain")),
        ("throw new TypeError('typed');", thrown("TypeError", "typed")),
        ("null.x;", thrown("TypeError", "cannot read property 'x' of null")),
        ("throw 'text';", thrown("string", "text")),
        ("throw 42;", thrown("int", "42")),
        ("throw undefined;", thrown("undefined", "undefined")),
        ("throw null;", thrown("null", "null")),
        ("throw { a: 1 };", thrown("Object", "{\"a\":1}")),
        ("throw { message: 'from an object' };", thrown("Object", "from an object")),
        ("throw Object.assign(new Error('x'), { name: 'Own' });", thrown("Own", "x")),
        ("throw { get message() { throw 1; }, get name() { throw 2; } };", thrown("Object", "an object")),
        ("await context.reject();", thrown("Error", "no answer")),
        ("return { get x() { throw new Error('in a getter'); } };", thrown("Error", "in a getter")),
        ("return { toJSON() { throw new Error('in toJSON'); } };", thrown("Error", "in toJSON")),
        (
            "return new Proxy({}, { ownKeys() { throw new Error('in a trap'); } });",
            thrown("Error", "in a trap"),
        ),
        ("throw Object.assign(new RangeError('out of memory'), {});", thrown("RangeError", "out of memory")),
    ];
    for (source, expected) in table {
        let got = match body_with(&engine, source).await {
            Err(Failure::Thrown { tool_error: None, name, message, .. }) => Some((name, message)),
            other => panic!("{source}: {other:?}"),
        };
        assert_eq!(got, expected, "{source}");
    }
}

#[tokio::test]
async fn an_error_has_its_position() {
    let source = "export async function execute() {\n  inner();\n}\nfunction inner() {\n  throw new Error('here');\n}\n";
    let result = engine().run(call(&program(source), json!({}))).await;
    let Err(Failure::Thrown { stack, .. }) = result else { panic!("{result:?}") };
    assert!(stack.contains("inner (handler.js:5:13)"), "{stack}");
    assert!(stack.contains("execute (handler.js:2:3)"), "{stack}");
}

#[tokio::test]
async fn an_error_of_a_host_function_has_its_code_and_the_position_of_the_call() {
    let source = "export async function execute({ context, args }) {
  try {
    await context.reject();
  } catch (error) {
    if (args.wrap) throw new Error('wrapped', { cause: error });
    throw error;
  }
}";
    let (engine, program) = (engine(), program(source));
    for (args, line) in
        [(json!({}), "execute (handler.js:3:"), (json!({ "wrap": true }), "execute (handler.js:5:")]
    {
        let result = engine.run(call(&program, args)).await;
        let Err(Failure::Thrown { code, stack, .. }) = result else { panic!("{result:?}") };
        assert_eq!(code.as_deref(), Some("TIMEOUT"));
        assert!(stack.contains(line) && !stack.contains("<null>"), "{stack}");
    }
}

#[tokio::test]
async fn a_tool_error_keeps_its_fields() {
    let source = "import { ToolError, ErrorType } from '../_core/error-types.js';
        export async function execute({ args }) {
          if (args.duck) throw { name: 'ToolError', type: 'AUTH', message: 'duck', retryable: 'yes' };
          throw new ToolError(ErrorType.CONFLICT, 'taken', { retryable: true, partialSideEffects: true, idempotencyRequired: true, details: { by: [1] } });
        }";
    let (engine, program) = (engine(), program(source));
    let fields = async |args| match engine.run(call(&program, args)).await {
        Err(Failure::Thrown { tool_error: Some(fields), .. }) => *fields,
        other => panic!("{other:?}"),
    };
    let full = ToolErrorFields {
        type_: "CONFLICT".to_owned(),
        message: "taken".to_owned(),
        retryable: true,
        partial_side_effects: true,
        idempotency_required: true,
        details: Some(json!({ "by": [1] })),
    };
    assert_eq!(fields(json!({})).await, full);
    let duck = ToolErrorFields {
        type_: "AUTH".to_owned(),
        message: "duck".to_owned(),
        ..ToolErrorFields::default()
    };
    assert_eq!(fields(json!({ "duck": true })).await, duck);
}

#[tokio::test]
async fn every_way_to_fail_at_loading_is_a_load_failure() {
    let run = "export async function execute() { return 1; }";
    let table: &[&[(&str, &str)]] = &[
        &[("handler.js", "export async function execute( {")],
        &[("handler.js", "import fs from 'fs'; export async function execute() {}")],
        &[("handler.js", "import x from 'node:os'; export async function execute() {}")],
        &[("handler.js", "import * as std from 'std'; export async function execute() {}")],
        &[("handler.js", "import x from './missing.js'; export async function execute() {}")],
        &[("handler.js", "import x from '../other-tool/handler.js'; export async function execute() {}")],
        &[("handler.js", "import x from '/etc/passwd'; export async function execute() {}")],
        &[
            ("handler.js", "import { missing } from './lib.js'; export async function execute() {}"),
            ("lib.js", "export const a = 1;"),
        ],
        &[(
            "handler.js",
            "import { missing } from '../_core/error-types.js'; export async function execute() {}",
        )],
        &[("handler.js", "import './lib.js'; export async function execute() {}"), ("lib.js", "][")],
        &[("handler.js", "export const execute = 1;")],
        &[("handler.js", "export default function execute() {}")],
        &[("handler.js", "")],
        &[("handler.js", "export async function execute() { await import('fs'); }")],
        &[("handler.js", "export async function execute() { await import('toolwright:prelude'); }")],
        &[
            ("handler.js", "export async function execute() { await import('./broken.js'); }"),
            ("broken.js", "]["),
        ],
        &[],
    ];
    let engine = engine();
    for sources in table {
        let result = engine.run(call(&modules(sources), json!({}))).await;
        assert!(matches!(result, Err(Failure::Load(_))), "{sources:?}: {result:?}");
    }
    assert_eq!(engine.run(call(&program(run), json!({}))).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_syntax_error_has_its_position() {
    let result = engine().run(call(&program("\n\nexport const = 1;"), json!({}))).await;
    let Err(Failure::Load(why)) = result else { panic!("{result:?}") };
    assert!(why.contains("SyntaxError") && why.contains("handler.js:3"), "{why}");
}

#[tokio::test]
async fn modules_of_the_tool_import_one_another() {
    let sources = [
        ("handler.js", "import { twice } from './lib/math.js'; import data from './lib/data.js';
            const top = await Promise.resolve(5);
            export async function execute() { const late = await import('./lib/late.js'); return [twice(2), data, top, late.name, late.fail() ]; }"),
        ("lib/math.js", "import { two } from './two.js'; export const twice = (n) => n * two();"),
        ("lib/two.js", "import { twice } from './math.js'; export const two = () => (typeof twice === 'function' ? 2 : 0);"),
        ("lib/data.js", "export default { list: [1] };"),
        ("lib/late.js", "import { ErrorType } from '../../_core/error-types.js'; export const name = 'late'; export const fail = () => ErrorType.UNAVAILABLE;"),
    ];
    let result = engine().run(call(&modules(&sources), json!({}))).await;
    assert_eq!(result, Ok(json!([4, { "list": [1] }, 5, "late", "UNAVAILABLE"])));
}

#[tokio::test]
async fn an_exception_at_the_top_of_a_module_is_thrown_by_the_handler() {
    let result = engine()
        .run(call(&program("throw new SyntaxError('mine'); export function execute() {}"), json!({})))
        .await;
    assert!(matches!(&result, Err(Failure::Thrown { message, .. }) if message == "mine"), "{result:?}");
}

#[tokio::test]
async fn execute_need_not_be_async() {
    let engine = engine();
    let sync = program("export function execute({ args }) { return args; }");
    assert_eq!(engine.run(call(&sync, json!({ "a": 1 }))).await, Ok(json!({ "a": 1 })));
    let throws = program("export const execute = () => { throw new Error('sync'); };");
    assert!(
        matches!(engine.run(call(&throws, json!({}))).await, Err(Failure::Thrown { message, .. }) if message == "sync")
    );
}

#[tokio::test]
async fn a_promise_that_can_never_settle_is_reported_at_once() {
    let engine = engine();
    for source in ["await new Promise(() => {});", "return new Promise(() => {});", "return { then() {} };"] {
        assert_eq!(body_with(&engine, source).await, Err(Failure::NeverSettles), "{source}");
    }
    let top = program("await new Promise(() => {}); export function execute() {}");
    assert_eq!(engine.run(call(&top, json!({}))).await, Err(Failure::NeverSettles));
}

#[tokio::test]
async fn host_errors_have_a_code_and_panics_become_errors() {
    let source = "
        const seen = [];
        for (const step of [() => context.reject(), () => context.panic(), () => context.kb.search({}), async () => context.fails(), async () => context.panics()]) {
          try { await step(); } catch (error) { seen.push([error instanceof Error, error.code, error.message]); }
        }
        return seen;";
    let expected = json!([
        [true, "TIMEOUT", "no answer"],
        [true, "INTERNAL", "the capability failed"],
        [true, "NOT_CONFIGURED", "no back end"],
        [true, "REJECTED", "refused by the host"],
        [true, "INTERNAL", "the capability failed"],
    ]);
    assert_eq!(body(source).await, Ok(expected));
}

#[tokio::test]
async fn arguments_of_host_calls_are_converted_like_json() {
    let source = "
        const cyclic = {}; cyclic.self = cyclic;
        const seen = [await context.echo(1, undefined, { a: undefined, b: new Date(0) }, undefined)];
        for (const bad of [cyclic, 1n, { get x() { throw new Error('getter'); } }, 'x'.repeat(2000000)]) {
          const pending = context.echo(bad);
          try { await pending; } catch (error) { seen.push(error.code ?? error.message); }
        }
        return seen;";
    let expected = json!([
        [1, null, { "b": "1970-01-01T00:00:00.000Z" }],
        "INVALID_ARGUMENT", "INVALID_ARGUMENT", "getter", "INVALID_ARGUMENT"
    ]);
    assert_eq!(body(source).await, Ok(expected));
}

#[tokio::test]
async fn a_megabyte_of_arguments_arrives_complete() {
    let list: Vec<Value> = (0..10_000).map(|n| json!({ "n": n, "text": "x".repeat(90) })).collect();
    let handler = program(
        "export async function execute({ args }) { return [args.list.length, args.list[9999].n, args.list.reduce((sum, { text }) => sum + text.length, 0)]; }",
    );
    let result = engine().run(call(&handler, json!({ "list": list }))).await;
    assert_eq!(result, Ok(json!([10_000, 9999, 900_000])));
}
