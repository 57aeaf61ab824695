//! Tools that call tools: the same gates, limited depth, no cycles, no more side effects than the caller declares.

use serde_json::json;

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
