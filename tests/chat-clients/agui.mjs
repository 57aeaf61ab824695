// Drives an AG-UI 1.0 endpoint with the real npm @ag-ui/client (HttpAgent: schema and event order are checked by it).
//   node agui.mjs BASE_URL [agui.json] [-v]
// Exit status 1 when a check failed, 2 for wrong usage.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const require = createRequire(new URL('./package.json', import.meta.url));
const { HttpAgent, buildResumeArray } = require('@ag-ui/client');
const { EventSchemas } = require('@ag-ui/core/schemas');
const args = process.argv.slice(2), [base, file] = args.filter(a => !a.startsWith('-'));
let fails = 0, here = '';
const ok = (what, cond, extra) => { if (!cond) fails++; if (!cond || args.includes('-v')) console.log(cond ? 'ok  ' : 'FAIL', `${here}: ${what}`, cond ? '' : JSON.stringify(extra ?? '')?.slice(0, 400)); return cond; };
const subset = (w, g) => Object.entries(w ?? {}).every(([k, v]) => JSON.stringify(g?.[k]) === JSON.stringify(v));
const text = c => typeof c === 'string' ? c : (c ?? []).map(p => p.text ?? '').join('');

async function drive(conf) {
  const url = base.replace(/\/$/, '') + conf.path;
  const agent = () => {
    const seen = [], a = new HttpAgent({ url, headers: conf.headers, threadId: 'thread-' + Math.random().toString(36).slice(2),
      fetch: async (u, i) => { a.body = JSON.parse(i.body); const r = await fetch(u, i); a.http = r; return r; } });
    a.seen = seen;
    a.go = async (user, extra = {}) => {                // one run; errors of the client (order, schema) are returned
      seen.length = 0; a.error = null;
      if (user) a.addMessage({ id: 'u' + Math.random().toString(36).slice(2), role: 'user', content: user });
      try { return await a.runAgent(extra, { onEvent: ({ event }) => { seen.push(event); } }); } catch (e) { a.error = e; return {}; }
    };
    a.says = () => a.messages.filter(m => m.role === 'assistant').map(m => text(m.content)).join('');
    return a;
  };
  const wire = a => {
    const t = a.seen.map(e => e.type);
    ok('text/event-stream', /^text\/event-stream/.test(a.http?.headers.get('content-type') ?? ''), a.http?.headers.get('content-type'));
    ok('client accepts every event and their order', !a.error, a.error?.message);
    ok('RUN_STARTED first (ids of the request), RUN_FINISHED last', t[0] === 'RUN_STARTED' && t.at(-1) === 'RUN_FINISHED' && a.seen[0].threadId === a.body.threadId && a.seen[0].runId === a.body.runId, t);
    for (const e of a.seen) { const r = EventSchemas.safeParse(e); if (!r.success) ok(`${e.type} fits the schema`, false, r.error?.message); }
    ok('RUN_FINISHED has an outcome', a.seen.at(-1)?.outcome?.type, a.seen.at(-1));
  };
  const call = (a, s) => {
    const c = a.messages.flatMap(m => m.toolCalls ?? []).findLast(c => c.function.name === s.tool);
    if (!ok(`tool call ${s.tool} in the messages`, c, a.messages)) return;
    let got = {}; try { got = JSON.parse(c.function.arguments); } catch {}
    ok('arguments', subset(s.args, got), c.function.arguments);
    return c;
  };
  const result = (a, c, want) => { const m = a.messages.findLast(m => m.role === 'tool' && m.toolCallId === c?.id); ok('TOOL_CALL_RESULT as a tool message', m && text(m.content).includes(want), a.messages); return m; };
  const run = {
    async text(s) { const a = agent(); await a.go(s.user); wire(a); ok('text', a.says().includes(s.expect), a.says()); ok('outcome success', a.seen.at(-1)?.outcome?.type === 'success', a.seen.at(-1)); },
    async tool(s) { const a = agent(); await a.go(s.user); wire(a); const c = call(a, s); result(a, c, s.result); ok('text', a.says().includes(s.expect), a.says()); },
    async toolError(s) { const a = agent(); await a.go(s.user); wire(a); result(a, call(a, s), s.result); ok('a tool error does not end the run', a.says().includes(s.expect), a.says()); },
    async approval(s) {
      const ask = async () => { const a = agent(); await a.go(s.user); wire(a); const i = a.pendingInterrupts; const c = call(a, s);
        ok('outcome interrupt with one interrupt for that call', i?.length === 1 && i[0].toolCallId === c?.id && i[0].reason, a.seen.at(-1));
        ok('message to show, expiresAt is a date, responseSchema is an object', i?.[0]?.message && !Number.isNaN(Date.parse(i[0].expiresAt)) && typeof i[0].responseSchema === 'object', i?.[0]);
        ok('no result before the answer', !a.messages.some(m => m.role === 'tool'), a.messages); return [a, c, i]; };
      const [a, c, i] = await ask();
      const resume = buildResumeArray(i, { [i[0].id]: { status: 'resolved', payload: s.approve } });
      await a.go(null, { resume }); wire(a);
      const m = result(a, c, s.result);
      ok('approved: goes on', a.says().includes(s.approved), a.says());
      ok('interrupts are gone', !a.pendingInterrupts?.length, a.pendingInterrupts);
      const again = await (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...conf.headers }, body: JSON.stringify({ ...a.body, runId: 'again' }) })).text();
      const out = again.split('\n').filter(l => l.startsWith('data:')).map(l => JSON.parse(l.slice(5))).find(e => e.type === 'TOOL_CALL_RESULT');
      ok('the same answer again does not run it again (RUN_ERROR, or the recorded result)', !out || text(out.content) === text(m?.content), out);
      const [b, , j] = await ask();
      await b.go(null, { resume: buildResumeArray(j, { [j[0].id]: { status: 'resolved', payload: s.deny } }) }); wire(b);
      ok('denied: said, and a result that says so', b.says().includes(s.denied) && b.messages.some(m => m.role === 'tool'), b.messages);
      const [d, , k] = await ask();
      await d.go(null, { resume: [{ interruptId: k[0].id, status: 'cancelled' }] }); wire(d);
      ok('cancelled: the tool did not run', !d.says().includes(s.approved), d.messages);
      const f = await (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...conf.headers }, body: JSON.stringify({ ...a.body, threadId: 'forged', runId: 'f', resume: [{ interruptId: 'never', status: 'resolved', payload: s.approve }] }) })).text();
      ok('an interrupt that was never raised: RUN_ERROR, nothing runs', f.includes('RUN_ERROR') && !f.includes('TOOL_CALL_RESULT'), f.slice(0, 300));
    },
    async failure(s) { const a = agent(); await a.go(s.user); const e = a.seen.at(-1); ok('RUN_ERROR with a message is the last event', e?.type === 'RUN_ERROR' && e.message, [e, a.error?.message]); },
  };
  for (const name of Object.keys(run)) { if (!conf[name]) continue; here = name; const n = fails; try { await run[name](conf[name]); } catch (e) { ok('ran to its end', false, e?.stack?.slice(0, 300)); } console.log(fails === n ? 'ok  ' : 'FAIL', name); }
}

if (!base) { console.error('usage: node agui.mjs BASE_URL [agui.json] [-v]'); process.exit(2); }
else { await drive(JSON.parse(readFileSync(file ?? new URL('agui.json', import.meta.url)))); process.exit(fails ? 1 : 0); }
