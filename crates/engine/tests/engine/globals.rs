//! The globals, as tables of expressions and their values.

use std::sync::Arc;

use crate::support::{body, body_with, call, engine, host, program};
use serde_json::{Value, json};
use toolwright_engine::Level;

async fn table(rows: &[(&str, Value)]) {
    let engine = engine();
    for (expression, expected) in rows {
        let source = format!("return ({expression});");
        assert_eq!(body_with(&engine, &source).await, Ok(expected.clone()), "{expression}");
    }
}

#[tokio::test]
async fn urls_are_parsed_by_the_standard() {
    let parts = "(({ href, origin, protocol, username, password, host, hostname, port, pathname, search, hash }) => [href, origin, protocol, username, password, host, hostname, port, pathname, search, hash])";
    let whole = format!("{parts}(new URL('../b?q=1#h', 'https://u:p@Example.com:8443/x/y/z'))");
    table(&[
        (&whole, json!(["https://u:p@example.com:8443/x/b?q=1#h", "https://example.com:8443", "https:", "u", "p", "example.com:8443", "example.com", "8443", "/x/b", "?q=1", "#h"])),
        ("String(new URL('http://ex.com'))", json!("http://ex.com/")),
        ("JSON.stringify({ u: new URL('http://ex.com') })", json!("{\"u\":\"http://ex.com/\"}")),
        ("({ u: new URL('http://ex.com') })", json!({ "u": "http://ex.com/" })),
        ("URL.canParse('nope')", json!(false)),
        ("URL.canParse('/x', 'http://ex.com')", json!(true)),
        ("(() => { try { new URL('nope'); } catch (error) { return error.name; } })()", json!("TypeError")),
        ("(() => { const u = new URL('http://ex.com/a?x=1'); u.pathname = '/b c'; u.port = '81'; u.hash = 'h'; u.searchParams.append('y', 'ä &'); return u.href; })()", json!("http://ex.com:81/b%20c?x=1&y=%C3%A4+%26#h")),
        ("(() => { const u = new URL('http://ex.com/a?x=1'); const p = u.searchParams; u.search = '?z=2'; return [p.get('z'), p.get('x'), u.href]; })()", json!(["2", null, "http://ex.com/a?z=2"])),
        ("(() => { const u = new URL('http://ex.com/'); u.protocol = 'https'; u.host = 'other.org:99'; return u.href; })()", json!("https://other.org:99/")),
        ("new URLSearchParams({ a: 1, b: 'x y' }).toString()", json!("a=1&b=x+y")),
        ("new URLSearchParams([['a', '1'], ['a', '2']]).getAll('a')", json!(["1", "2"])),
        ("[...new URLSearchParams('?b=2&a=1&a=3')]", json!([["b", "2"], ["a", "1"], ["a", "3"]])),
        ("(() => { const p = new URLSearchParams('b=2&a=1&a=3'); p.set('a', 9); p.delete('b'); p.append('c', ''); p.sort(); return [p.toString(), p.size, p.has('c'), p.get('zz'), [...p.keys()]]; })()", json!(["a=9&c=", 2, true, null, ["a", "c"]])),
        ("new URL('http://bücher.example/').hostname", json!("xn--bcher-kva.example")),
    ])
    .await;
}

#[tokio::test]
async fn text_is_encoded_and_decoded() {
    table(&[
        ("[...new TextEncoder().encode('aä€😀')]", json!([97, 195, 164, 226, 130, 172, 240, 159, 152, 128])),
        ("new TextDecoder().decode(new TextEncoder().encode('aä€😀'))", json!("aä€😀")),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xff]))", json!("a\u{fffd}")),
        ("new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 97]))", json!("\u{feff}a")),
        ("new TextDecoder().decode(new Uint8Array([1, 97, 98, 2]).subarray(1, 3))", json!("ab")),
        ("new TextDecoder().decode(new Uint8Array([97]).buffer)", json!("a")),
        ("(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])); } catch (error) { return error.name; } })()", json!("TypeError")),
        ("(() => { try { new TextDecoder('latin1'); } catch (error) { return error.name; } })()", json!("RangeError")),
        ("[...new TextEncoder().encode('\\ud800')]", json!([239, 191, 189])),
    ])
    .await;
}

#[tokio::test]
async fn structured_clones_are_deep_and_keep_their_shape() {
    table(&[
        ("(() => { const a = { d: new Date(5), m: new Map([[1, { x: 1 }]]), s: new Set([1]), u: new Uint8Array([1, 2]), r: /x/gi, l: [1, , 3] }; a.self = a; const b = structuredClone(a); return [b !== a, b.self === b, b.d.getTime(), b.m.get(1).x, b.m.get(1) !== a.m.get(1), b.s.has(1), [...b.u], b.u.buffer !== a.u.buffer, String(b.r), b.l.length, 1 in b.l]; })()", json!([true, true, 5, 1, true, true, [1, 2], true, "/x/gi", 3, false])),
        ("(() => { try { structuredClone({ f() {} }); } catch (error) { return [error.name, error instanceof DOMException]; } })()", json!(["DataCloneError", true])),
        ("(() => { const e = structuredClone(new TypeError('t')); return [e instanceof TypeError, e.message]; })()", json!([true, "t"])),
        ("structuredClone(undefined) === undefined && structuredClone(null) === null && structuredClone(1n) === 1n", json!(true)),
    ])
    .await;
}

#[tokio::test]
async fn signals_abort() {
    table(&[
        ("(() => { const c = new AbortController(); const seen = []; c.signal.addEventListener('abort', (e) => seen.push(e.type, c.signal.aborted)); c.signal.onabort = () => seen.push('on'); c.abort(); c.abort(); return [seen, c.signal.reason.name]; })()", json!([["on", "abort", true], "AbortError"])),
        ("(() => { const c = new AbortController(); c.abort('why'); try { c.signal.throwIfAborted(); } catch (reason) { return [reason, c.signal.reason]; } })()", json!(["why", "why"])),
        ("(() => { const c = new AbortController(); let n = 0; const f = () => { n += 1; }; c.signal.addEventListener('abort', f); c.signal.removeEventListener('abort', f); c.abort(); return n; })()", json!(0)),
        ("new Promise((done) => { const s = AbortSignal.timeout(5); s.addEventListener('abort', () => done([s.aborted, s.reason.name])); })", json!([true, "TimeoutError"])),
        ("(() => { const c = new AbortController(); const any = AbortSignal.any([c.signal]); c.abort(1); return [any.aborted, any.reason, AbortSignal.abort(2).reason]; })()", json!([true, 1, 2])),
        ("(() => { try { new AbortSignal(); } catch (error) { return error.name; } })()", json!("TypeError")),
        ("[context.signal.aborted, context.signal.reason, context.signal === context.signal, context.signal instanceof AbortSignal]", json!([false, null, true, true])),
    ])
    .await;
}

#[tokio::test]
async fn timers_fire_in_order_and_can_be_cleared() {
    table(&[
        ("new Promise((done) => { const seen = []; setTimeout((x) => { seen.push(x); done(seen); }, 40, 'c'); setTimeout(() => seen.push('b'), 15); const t = setTimeout(() => seen.push('never'), 10); clearTimeout(t); queueMicrotask(() => seen.push('a')); })", json!(["a", "b", "c"])),
        ("(() => { clearTimeout(undefined); clearTimeout(99); return typeof setTimeout(() => {}, 1); })()", json!("number")),
        ("(() => { try { setTimeout('code'); } catch (error) { return error.name; } })()", json!("TypeError")),
        ("new Promise((done) => { setTimeout(() => { throw new Error('lost'); }, 1); setTimeout(() => done('on'), 15); })", json!("on")),
    ])
    .await;
}

#[tokio::test]
async fn random_numbers_are_repeatable_with_a_seed() {
    table(&[
        ("/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())", json!(true)),
        ("new Set(Array.from({ length: 50 }, () => crypto.randomUUID())).size", json!(50)),
        ("(() => { const a = crypto.getRandomValues(new Uint32Array(8)); return [a.length, a.some((x) => x !== 0)]; })()", json!([8, true])),
        ("(() => { try { crypto.getRandomValues(new Uint8Array(70000)); } catch (error) { return error.name; } })()", json!("QuotaExceededError")),
        ("(() => { const all = Array.from({ length: 4000 }, Math.random); const mean = all.reduce((a, b) => a + b) / 4000; return [all.every((x) => x >= 0 && x < 1), new Set(all).size > 3990, mean > 0.45 && mean < 0.55, Math.random.name]; })()", json!([true, true, true, "random"])),
    ])
    .await;
    let engine = engine();
    let handler = program(
        "export async function execute() { return [Math.random(), Math.random(), crypto.randomUUID()]; }",
    );
    let draw = async |seed| {
        let mut one = call(&handler, json!({}));
        one.seed = seed;
        engine.run(one).await.unwrap()
    };
    assert_eq!(draw(Some(7)).await, draw(Some(7)).await);
    assert_ne!(draw(Some(7)).await, draw(Some(8)).await);
    assert_ne!(draw(None).await, draw(None).await);
}

#[tokio::test]
async fn the_clock_runs_or_is_fixed() {
    let engine = engine();
    let handler = program("export async function execute() {
        class Later extends Date {}
        return [Date.now(), new Date().toISOString(), new Date(5).getTime(), new Date() instanceof Date, new Date(2026, 0).getFullYear(), Date.parse('1970-01-01T00:00:01Z'), Date.UTC(1970, 0, 2), typeof Date(), Date.name, new Later().getTime(), new Date(5).constructor === Date];
      }");
    let mut one = call(&handler, json!({}));
    one.now = Some(1_772_359_200_000);
    let fixed = json!([
        1_772_359_200_000_i64,
        "2026-03-01T10:00:00.000Z",
        5,
        true,
        2026,
        1000,
        86_400_000,
        "string",
        "Date",
        1_772_359_200_000_i64,
        true
    ]);
    assert_eq!(engine.run(one).await, Ok(fixed));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let real = body_with(&engine, "return Date.now();").await.unwrap().as_i64().unwrap();
    assert!((real - now).abs() < 60_000);
}

#[tokio::test]
async fn console_lines_reach_the_host_within_limits() {
    let source = "export async function execute() {
        console.log('a', 1, { b: [2] }, undefined, null, true, 3n, () => 1, Symbol('s'));
        console.warn('w'); console.error(new TypeError('t')); console.debug('d'); console.info('i');
        const cyclic = {}; cyclic.self = cyclic; console.log(cyclic);
        console.log('ä'.repeat(5000));
        for (let i = 0; i < 500; i += 1) console.log(i);
        return 1;
      }";
    let stubs = Arc::new(host());
    let mut one = call(&program(source), json!({}));
    one.host = stubs.clone();
    assert_eq!(engine().run(one).await, Ok(json!(1)));
    let lines = stubs.lines.lock().unwrap();
    assert_eq!(lines.len(), 200);
    assert_eq!(
        lines[0],
        (Level::Info, "a 1 {\"b\":[2]} undefined null true 3n [Function: anonymous] Symbol(s)".to_owned())
    );
    assert_eq!(lines[1], (Level::Warn, "w".to_owned()));
    assert!(lines[2].0 == Level::Error && lines[2].1.starts_with("TypeError: t\n"), "{:?}", lines[2]);
    assert_eq!((lines[3].0, lines[4].0), (Level::Debug, Level::Info));
    assert_eq!(lines[5].1, "[object Object]");
    assert_eq!(lines[6].1.len(), 4096);
}

#[tokio::test]
async fn the_whole_language_is_available() {
    table(&[
        ("'Crème Brûlée'.normalize('NFD').replace(/\\p{M}/gu, '')", json!("Creme Brulee")),
        ("[3, 1, 2].toSorted().at(-1) + Object.groupBy([1, 2], (x) => (x % 2 ? 'odd' : 'even')).odd[0]", json!(4)),
        ("String(2n ** 70n)", json!("1180591620717411303424")),
        ("'2026-03-01'.match(/(?<year>\\d+)-/).groups.year", json!("2026")),
        ("new WeakRef(globalThis).deref() === globalThis && typeof FinalizationRegistry", json!("function")),
        ("typeof performance.now()", json!("number")),
        ("(await Promise.allSettled([Promise.reject(1), 2])).map((x) => x.status)", json!(["rejected", "fulfilled"])),
        ("(async () => { const out = []; for await (const x of (async function* () { yield 1; yield 2; })()) out.push(x); return out; })()", json!([1, 2])),
        ("JSON.stringify({ a: [1, { b: null }] }, null, 1).length", json!(40)),
    ])
    .await;
}

#[tokio::test]
async fn a_handler_can_replace_its_own_globals() {
    let source = "globalThis.setTimeout = 5; globalThis.URL = class { x = 1 }; return [setTimeout, new URL().x, typeof console.log, Object.keys(globalThis)];";
    assert_eq!(body(source).await, Ok(json!([5, 1, "function", ["performance"]])));
}
