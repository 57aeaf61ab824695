//! Tools that call tools: the same gates, limited depth, no cycles, no more side effects than the caller declares.

use serde_json::json;
use toolwright_registry::toolset::Implementation;

use crate::support::{ToolsetBuilder, assert_internal, call};

#[tokio::test]
async fn a_tool_gets_the_whole_envelope_of_another() {
    let schema = json!({ "sideEffects": "none", "jsonSchema": { "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer" } } } });
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool("outer", json!({}), "return { ok: true, data: await context.callTool('inner', args) }")
        .tool("inner", schema, "return { ok: true, data: { twice: args.n * 2, id: context.executionId } }")
        .runtime();
    let inner = &call(&runtime, "outer", json!({ "n": 4 })).await["data"];
    assert_eq!(inner["data"], json!({ "twice": 8, "id": "call-1.1" }));
    assert_eq!((&inner["ok"], &inner["meta"]["tool"]), (&json!(true), &json!("inner")));
    let refused = &call(&runtime, "outer", json!({ "n": "four" })).await["data"];
    assert_eq!((&refused["ok"], &refused["error"]["type"]), (&json!(false), &json!("VALIDATION")));
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool("outer", json!({}), "return { ok: true, data: await context.callTool('unknown', {}) }")
        .runtime();
    assert_eq!(call(&runtime, "outer", json!({})).await["data"]["error"]["type"], "NOT_FOUND");
}

const CODE: &str = "try { await context.callTool(args.next, args) } catch (error) { return { ok: true, data: error.code + ': ' + error.message } } \
    return { ok: true, data: 'called' }";

#[tokio::test]
async fn a_cycle_is_refused() {
    let through =
        "const inner = await context.callTool('b', { next: 'a' }); return { ok: true, data: inner.data }";
    let (runtime, _dir) =
        ToolsetBuilder::new().tool("a", json!({}), through).tool("b", json!({}), CODE).runtime();
    assert_eq!(
        call(&runtime, "a", json!({})).await["data"],
        "NOT_ALLOWED: `a` is being called already: a → b"
    );
    assert_eq!(
        call(&runtime, "b", json!({ "next": "b" })).await["data"],
        "NOT_ALLOWED: `b` is being called already: b"
    );
}

#[tokio::test]
async fn tools_call_tools_at_most_eight_deep() {
    let mut bench = ToolsetBuilder::new();
    for level in 1..=9 {
        let next = level + 1;
        let body = format!(
            "if ({level} === 9) return {{ ok: true, data: 9 }};
             try {{ const inner = await context.callTool('t{next}', {{}}); return {{ ok: true, data: inner.data }} }}
             catch (error) {{ return {{ ok: true, data: '{level}: ' + error.code }} }}"
        );
        bench = bench.tool(&format!("t{level}"), json!({}), &body);
    }
    let (runtime, _dir) = bench.runtime();
    assert_eq!(call(&runtime, "t1", json!({})).await["data"], "8: NOT_ALLOWED");
    assert_eq!(call(&runtime, "t2", json!({})).await["data"], 9);
}

#[tokio::test]
async fn a_tool_cannot_call_a_tool_with_more_side_effects() {
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool("reader", json!({ "sideEffects": "read_only" }), CODE)
        .tool("writer", json!({}), "return { ok: true }")
        .tool("other_reader", json!({ "sideEffects": "read_only" }), "return { ok: true }")
        .runtime();
    let refused = call(&runtime, "reader", json!({ "next": "writer" })).await;
    assert_eq!(
        refused["data"],
        "NOT_ALLOWED: `writer` has `sideEffects: writes`, more than the calling tool"
    );
    assert_eq!(call(&runtime, "reader", json!({ "next": "other_reader" })).await["data"], "called");
}

#[tokio::test]
async fn a_nested_call_ends_with_the_deadline_of_its_caller() {
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool(
            "outer",
            json!({ "timeoutMs": 100 }),
            "return { ok: true, data: await context.callTool('inner', {}) }",
        )
        .tool(
            "inner",
            json!({ "timeoutMs": 20000 }),
            "await new Promise((done) => setTimeout(done, 15000)); return { ok: true }",
        )
        .runtime();
    assert_eq!(call(&runtime, "outer", json!({})).await["error"]["type"], "TRANSIENT");
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool("outer", json!({}), "return { ok: true, data: await context.callTool(7) }")
        .runtime();
    assert_internal("outer", &call(&runtime, "outer", json!({})).await);
}

#[tokio::test]
async fn javascript_gets_exact_numbers_or_an_error() {
    const INEXACT: u64 = (1 << 53) + 1;
    let mock = Implementation::Mock(json!({ "id": INEXACT }));
    let (runtime, _dir) = ToolsetBuilder::new()
        .tool("twice", json!({}), "return { ok: true, data: { n: args.list[0].n } }")
        .add("mock", json!({}), mock)
        .tool(
            "asks",
            json!({}),
            "try { await context.callTool('mock', args) } catch (error) { return { ok: true, data: error.name + ': ' + error.message } }",
        )
        .runtime();
    let refused = &call(&runtime, "twice", json!({ "list": [{ "n": INEXACT }] })).await["error"];
    assert_eq!(refused["type"], "VALIDATION");
    assert_eq!(
        refused["message"],
        "Invalid parameters: /list/0/n is 9007199254740993, which JavaScript cannot hold exactly (beyond 2^53); use a string"
    );
    assert_eq!(refused["details"][0]["instancePath"], "/list/0/n");
    for exact in
        [json!(1_u64 << 53), json!((1_u64 << 53) + 2), json!(-9_007_199_254_740_992_i64), json!(1e300)]
    {
        let args = json!({ "list": [{ "n": exact }] });
        assert_eq!(call(&runtime, "twice", args).await["data"]["n"].as_f64(), exact.as_f64());
    }
    // A tool that is not written in JavaScript gets and returns all digits.
    assert_eq!(call(&runtime, "mock", json!({ "n": u64::MAX })).await["data"]["id"], INEXACT);
    assert_eq!(
        call(&runtime, "asks", json!({})).await["data"],
        "RangeError: the number 9007199254740993 cannot be held exactly (beyond 2^53); use a string"
    );
}
