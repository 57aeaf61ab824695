// Calls, confirmations, sessions, knowledge base, metrics and audit.

import { test } from 'node:test';
import { execFileSync } from 'node:child_process';

import { api, assert, brokenServer, checkLook, keyServer, openServer, withPage } from './support.mjs';

const call = (server, key, tool, args, more = {}) => api(server, key, 'POST', `/v1/tools/${tool}/call`, { args, ...more });

/** Asks the agent something; returns the session. */
async function ask(server, key, id, text) {
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text }] };
  const answer = await fetch(`${server.url}/api/chat`, { method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id, messages: [message] }) });
  await answer.text();
  return answer.headers.get('x-toolwright-session');
}

/** The audit entries of a tool in a session, oldest first. */
async function auditOf(server, tool, session) {
  const found = [];
  for (let after = 0; ;) {
    const { entries, next } = await api(server, server.keys.admin, 'GET', `/v1/audit?after=${after}&limit=1000`);
    // Each row has the entry and its place in the chain.
    found.push(...entries.map(({ entry }) => entry).filter((entry) => entry.tool === tool && entry.session === session));
    if (entries.length === 0) return found;
    after = next;
  }
}

test('calls appear as they happen, filters are in the address, and a call has a page', async () => {
  const server = await keyServer();
  const { admin, member } = server.keys;
  const { sessionId } = await api(server, member, 'POST', '/v1/sessions', { mode: 'text' });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    await page.goto('/calls');
    const row = page.locator('#calls tbody tr', { hasText: 'extract_contacts' });
    const before = await row.count();
    await call(server, member, 'extract_contacts', { text: 'Ines Halloran, tel. 030 23125014', region: 'DE' }, { sessionId });
    await row.nth(before).waitFor();
    await fetch(`${server.url}/v1/tools/kb_search/call`, { method: 'POST',
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({ args: { query: 1 } }) });
    await page.locator('#calls', { hasText: 'VALIDATION' }).waitFor();
    await checkLook(page, 'calls');
    await page.getByLabel('Tool', { exact: true }).fill('extract_contacts');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL(/\/calls\?.*tool=extract_contacts/);
    assert.equal(await page.locator('#calls tbody tr', { hasText: 'kb_search' }).count(), 0);
    await row.first().getByRole('link').first().click();
    await page.getByRole('heading', { name: 'extract_contacts' }).waitFor();
    const text = await page.locator('main').innerText();
    for (const part of ['Steps', 'Arguments', 'Envelope', '030 23125014', 'Audit entry']) {
      assert.ok(text.includes(part), `the page has no ${part}`);
    }
    await checkLook(page, 'call');
  });
});

test('the live table is paused, has pages, and is filtered by outcome, session and user', async () => {
  const server = await keyServer();
  const { member } = server.keys;
  const { sessionId } = await api(server, member, 'POST', '/v1/sessions', { mode: 'text' });
  for (let number = 0; number < 53; number += 1) {
    await call(server, member, 'write_note', { note: `note ${number}` }, { sessionId });
  }
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    const rows = page.locator('#calls tbody tr');
    await page.goto(`/calls?session=${sessionId}`);
    assert.equal(await rows.count(), 50);
    const toggle = page.getByRole('button', { name: 'Live' });
    assert.equal(await toggle.getAttribute('aria-pressed'), 'true');
    await toggle.click();
    await page.getByRole('button', { name: 'Paused' }).waitFor();
    const newest = async () => rows.first().getByRole('link').first().getAttribute('href');
    const before = await newest();
    // The script hears of the call: it reads the badge, and nothing else.
    const heard = page.waitForResponse((response) => response.url().endsWith('/confirmations/count'));
    await call(server, member, 'write_note', { note: 'while paused' }, { sessionId });
    await heard;
    assert.equal(await newest(), before, 'the table has changed while it was paused');
    await page.getByRole('button', { name: 'Paused' }).click();
    await page.waitForFunction((href) => document.querySelector('#calls tbody a').getAttribute('href') !== href, before);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.waitForURL(/before=\d+/);
    assert.equal(await rows.count(), 4);
    assert.equal(await page.locator('[data-live], [data-live-toggle]').count(), 0, 'an older page is live');
    await page.getByRole('link', { name: 'First' }).click();
    await page.waitForURL((url) => !url.searchParams.has('before') && url.searchParams.get('session') === sessionId);
    await page.getByLabel('Outcome').selectOption('error');
    await page.waitForURL(/outcome=error/);
    await page.getByText('No call matches these filters.').waitFor();
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByLabel('User').fill('ada');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL(/principal=ada/);
    assert.equal(await rows.filter({ hasText: 'mira' }).count(), 0);
  });
});

test('a call has the calls below it as a tree, its intents, its retries and its replays', async () => {
  const server = await keyServer();
  const { member } = server.keys;
  const { sessionId } = await api(server, member, 'POST', '/v1/sessions', { mode: 'text' });
  const address = ({ meta }) => `/calls/${meta.executionId}?session=${sessionId}`;
  const outer = await call(server, member, 'outer_call', { email: 'mira@studio.example' }, { sessionId });
  const busy = await call(server, member, 'busy', {}, { sessionId });
  const note = { sessionId, executionId: 'note-1' };
  const first = await call(server, member, 'write_note', { note: 'milk' }, note);
  const second = await call(server, member, 'write_note', { note: 'milk' }, note);
  assert.deepEqual(second.data, first.data);
  await withPage(server, { signedInAs: 'member' }, async (page) => {
    await page.goto(address(outer));
    const tree = page.locator('section', { has: page.getByRole('heading', { name: 'Calls that it has made' }) });
    const depths = await tree.locator('tbody td:first-child').evaluateAll((all) =>
      all.map((cell) => [cell.className, cell.textContent.trim()]));
    assert.deepEqual(depths, [['nested1', 'middle_call'], ['nested2', 'validate_email']]);
    assert.match(await page.locator('.stats').innerText(), /Intents\s*SUPPRESS_AUDIO/i);
    await checkLook(page, 'call-nested');
    await tree.getByRole('link', { name: 'validate_email' }).click();
    await page.getByRole('link', { name: 'made by another call' }).click();
    await page.getByRole('heading', { name: 'middle_call' }).waitFor();
    await page.goto(address(busy));
    const steps = await page.locator('.steps tbody th').allInnerTexts();
    assert.deepEqual(steps.filter((step) => /run|backoff/.test(step)), ['run 1', 'backoff', 'run 2']);
    await page.goto(`/calls/note-1?session=${sessionId}`);
    const history = page.locator('section', { has: page.getByRole('heading', { name: 'History' }) });
    assert.deepEqual(await history.locator('tbody td:nth-child(3)').allInnerTexts(), ['called', 'replayed']);
  });
});

test('a call is made again with edited arguments, and the error is shown', async () => {
  const server = await keyServer();
  const { sessionId } = await api(server, server.keys.member, 'POST', '/v1/sessions', { mode: 'text' });
  await call(server, server.keys.member, 'validate_email', { email: 'ines@lanternfield.example' }, { sessionId });
  await withPage(server, { signedInAs: 'member', allowed: [/status of 422/] }, async (page) => {
    await page.goto('/calls?tool=validate_email');
    await page.locator('#calls tbody tr').first().getByRole('link').first().click();
    await page.getByLabel('Arguments as JSON').fill('{"email": ');
    await page.getByRole('button', { name: 'Call validate_email' }).click();
    await page.locator('#again .error').waitFor();
    await page.getByLabel('Arguments as JSON').fill('{"email": "again@lanternfield.example"}');
    await page.getByRole('button', { name: 'Call validate_email' }).click();
    await page.locator('main', { hasText: 'again@lanternfield.example' }).waitFor();
  });
});

test('confirmations are approved, edited and rejected, with a badge on every page', async () => {
  const server = await keyServer();
  const { member } = server.keys;
  const { sessionId } = await api(server, member, 'POST', '/v1/sessions', { mode: 'text' });
  for (const id of [21, 22, 23]) await call(server, member, 'delete_item', { id }, { sessionId });
  await withPage(server, { signedInAs: 'admin', allowed: [/status of 422/] }, async (page) => {
    await page.goto('/');
    const badge = page.getByRole('link', { name: /Confirmations/ }).locator('.chip');
    const before = parseInt(await badge.innerText(), 10);
    assert.ok(before >= 3, `${before} are waiting`);
    await page.goto('/confirmations');
    const request = (id) => page.locator('#waiting > section', { hasText: `Delete item ${id}` });
    assert.match(await request(21).innerText(), /mira[^]*/);
    assert.match(await request(21).locator('[data-expires]').innerText(), /\d/);
    await checkLook(page, 'confirmations');
    await request(21).getByRole('button', { name: 'Approve', exact: true }).click();
    await request(21).waitFor({ state: 'detached' });
    await page.goto('/confirmations');
    await request(22).getByLabel('Reason').fill('not now');
    await request(22).getByRole('button', { name: 'Reject' }).click();
    await request(22).waitFor({ state: 'detached' });
    await page.goto('/confirmations');
    await request(23).getByText('Edit and approve').click();
    await request(23).getByLabel('Arguments as JSON').fill('{"id": "x"}');
    await request(23).getByRole('button', { name: 'Approve with these arguments' }).click();
    await page.locator('#waiting .field-error', { hasText: 'integer' }).waitFor();
    await request(23).getByLabel('Arguments as JSON').fill('{"id": 24}');
    await request(23).getByRole('button', { name: 'Approve with these arguments' }).click();
    await request(23).waitFor({ state: 'detached' });
  });
  const entries = await auditOf(server, 'delete_item', sessionId);
  const answers = entries.filter(({ event }) => ['approved', 'rejected'].includes(event));
  assert.deepEqual(answers.map(({ event, data }) => [event, data.by, data.edited ?? false, data.reason ?? null]),
    [['approved', 'ada', false, null], ['rejected', 'ada', false, 'not now'], ['approved', 'ada', true, null]]);
  assert.equal(entries.filter(({ event, outcome }) => event === 'called' && outcome === 'ok').length, 2);
});

test('a member sees only its own calls and sessions', async () => {
  const server = await keyServer();
  const { sessionId } = await api(server, server.keys.admin, 'POST', '/v1/sessions', { mode: 'text' });
  await call(server, server.keys.admin, 'format_datetime', { datetime: '2026-11-18T10:00:00Z', timezone: 'Europe/Berlin' },
    { sessionId }).catch(() => {});
  await withPage(server, { signedInAs: 'member', allowed: [/status of 404/] }, async (page) => {
    await page.goto('/sessions');
    assert.ok(!(await page.locator('main').innerText()).includes(sessionId));
    assert.equal((await page.goto(`/sessions/${sessionId}`)).status(), 404);
    await page.goto('/calls');
    assert.equal(await page.locator('#calls tbody tr', { hasText: 'ada' }).count(), 0);
    await checkLook(page, 'calls-member');
  });
});

test('a session shows its conversation, calls, budgets and state, and is ended', async () => {
  const server = await keyServer();
  const { member } = server.keys;
  const session = await ask(server, member, 'for-the-session-page', 'weather in Oslo');
  await withPage(server, { signedInAs: 'member' }, async (page) => {
    await page.goto('/sessions');
    await checkLook(page, 'sessions');
    await page.getByRole('link', { name: session }).click();
    const text = await page.locator('main').innerText();
    for (const part of ['weather in Oslo', 'It is 5 degrees.', 'get_weather', 'Budgets', 'State']) {
      assert.ok(text.includes(part), `the page has no ${part}`);
    }
    const budgets = page.locator('section', { has: page.getByRole('heading', { name: 'Budgets' }) }).locator('tbody td');
    const [meter, scope, spent, limit] = await budgets.allInnerTexts();
    assert.deepEqual([meter, scope, spent], ['retrieval', 'turn', '1']);
    assert.match(limit, /^[1-9]\d*$/);
    await checkLook(page, 'session');
    await page.getByRole('link', { name: 'Open in chat' }).click();
    await page.locator('.msg', { hasText: 'It is 5 degrees.' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'End the session' }).click();
    await page.getByText('ended').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'End the session' }).count(), 0);
  });
});

test('the knowledge base is searched with scores, a record is opened, a text is added', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/kb');
    await checkLook(page, 'kb');
    await page.getByLabel('Search the knowledge base').fill('who founded the studio');
    await page.getByRole('button', { name: 'Search' }).click();
    const found = page.locator('.results li', { hasText: 'person:ines_halloran' }).first();
    const score = Number(await found.locator('.num').innerText());
    assert.ok(score > 0 && score <= 1, `the score is ${score}`);
    // The meter has whole hundredths, cut off; the number is rounded.
    const meter = Number(await found.locator('meter').getAttribute('value'));
    assert.ok(meter > 0 && Math.abs(meter - score * 100) <= 1, `the meter is ${meter} at a score of ${score}`);
    await checkLook(page, 'kb-results');
    await page.locator('.results').getByRole('link', { name: 'Ines Halloran' }).first().click();
    await page.getByRole('heading', { name: 'Ines Halloran' }).waitFor();
    await checkLook(page, 'kb-record');
    await page.goto('/kb');
    await page.getByLabel('Name', { exact: true }).fill('parking.md');
    await page.getByLabel('Text', { exact: true }).fill('# Parking\n\nVisitors park <script>window.hacked = 1</script> in the yard.');
    await page.getByRole('button', { name: 'Add to the knowledge base' }).click();
    await page.getByLabel('Search the knowledge base').fill('where do visitors park');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.locator('.results li', { hasText: 'in the yard' }).waitFor();
  });
});

test('a file is chosen, read and added to the knowledge base, and a name that cannot be used is refused', async () => {
  await withPage(await openServer(), { allowed: [/status of 422/] }, async (page) => {
    await page.goto('/kb');
    const text = '# Quiet hours\n\nThe quiet hours of the studio begin at ten.';
    await page.getByLabel('A file').setInputFiles({ name: 'hours.pdf', mimeType: 'text/markdown', buffer: Buffer.from(text) });
    await page.waitForFunction(() => document.getElementById('kb-name').value === 'hours.pdf');
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), text);
    await page.getByRole('button', { name: 'Add to the knowledge base' }).click();
    const refused = page.locator('#add [role="alert"]');
    assert.match(await refused.innerText(), /hours\.pdf|\.md/);
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), text, 'what was typed is lost');
    await checkLook(page, 'kb-refused');
    await page.getByLabel('Name', { exact: true }).fill('hours.md');
    await page.getByRole('button', { name: 'Add to the knowledge base' }).click();
    await page.getByText('1 record can be found now.').waitFor();
    await page.getByLabel('Search the knowledge base').fill('when do the quiet hours begin');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.locator('.results li', { hasText: 'begin at ten' }).waitFor();
  });
});

test('metrics are shown as charts with tables beside them', async () => {
  const server = await keyServer();
  await call(server, server.keys.admin, 'validate_email', { email: 'ines@lanternfield.example' });
  await ask(server, server.keys.member, 'for-the-metrics-page', 'say something');
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    await page.goto('/usage');
    await page.getByRole('region', { name: 'By tool and version' }).getByText('validate_email').waitFor();
    for (const name of ['Calls', 'Errors and refusals', 'Latency', 'Tokens', 'First token']) {
      const chart = page.locator('section', { has: page.getByRole('heading', { name, exact: true }) });
      await chart.locator('svg').waitFor();
      await chart.getByText('As a table').click();
      const cells = await chart.locator('td.num').allInnerTexts();
      const hasData = cells.some((cell) => /[1-9]/.test(cell));
      assert.ok(hasData || name.startsWith('Errors'), `${name} has no data: ${cells}`);
      await chart.getByText('As a table').click();
    }
    assert.match(await page.locator('section', { hasText: 'The agent' }).last().innerText(), /Output tokens\s*[1-9]/i);
    await checkLook(page, 'metrics');
    await page.getByLabel('Tool', { exact: true }).fill('validate_email');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/tool=validate_email/);
  });
});

test('the audit log is filtered, verified and exported', async () => {
  const server = await keyServer();
  await call(server, server.keys.admin, 'validate_email', { email: 'ines@lanternfield.example' });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    await page.goto('/audit?tool=validate_email');
    await page.getByRole('region', { name: 'Entries' }).getByText('validate_email').first().waitFor();
    await checkLook(page, 'audit');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()]);
    const text = await (await download.createReadStream()).toArray();
    assert.match(Buffer.concat(text).toString(), /validate_email/);
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.waitForURL(/\/audit\?tool=validate_email$/);
    assert.match(await page.locator('.notice.ok').innerText(), /The audit is intact\. Entries that were checked: [1-9]/);
    assert.match(await page.locator('#verified pre').innerText(), /"hash"/);
    await checkLook(page, 'audit-verified');
  });
});

test('an audit whose entry was edited is not intact', async () => {
  const server = await brokenServer();
  for (const id of [51, 52, 53]) await call(server, null, 'delete_item', { id });
  await withPage(server, {}, async (page) => {
    await page.goto('/audit');
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText('The audit is intact.').waitFor();
    const edit = "UPDATE audit SET entry = replace(entry, 'delete_item', 'harmless_it') WHERE number = 2";
    execFileSync('python3', ['-c', `import sqlite3; c = sqlite3.connect(".toolwright/state.db"); c.execute("""${edit}"""); c.commit()`],
      { cwd: server.project });
    await page.getByRole('button', { name: 'Verify' }).click();
    const verdict = page.locator('.notice.bad');
    await verdict.waitFor();
    assert.match(await verdict.innerText(), /The audit was changed\.[^]*2/);
    assert.equal(await page.locator('#verified pre').count(), 0, 'a broken chain has heads to save');
    await checkLook(page, 'audit-broken');
  });
});

test('hostile text in arguments, results and names stays text', async () => {
  const server = await keyServer();
  const { admin } = server.keys;
  const text = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\u202Eelbisivni ${'x'.repeat(900_000)}`;
  const named = '<script>window.hacked = 3</script>\u202E javascript:window.hacked=4';
  const { sessionId } = await api(server, admin, 'POST', '/v1/sessions', { mode: 'text', sessionId: named, clientId: named });
  await call(server, admin, 'hostile_text', { text }, { sessionId });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    for (const path of ['/', '/confirmations', '/calls', '/audit', '/sessions', `/sessions/${encodeURIComponent(sessionId)}`]) {
      await page.goto(path);
      assert.equal(await page.locator('main :is(img, iframe), main script, a[href^="javascript"]').count(), 0, path);
      const shown = await page.locator('body').innerText();
      assert.ok(!shown.includes('\u202E'), `text is reordered on ${path}`);
      assert.ok((await page.content()).length < 400_000, `${path} has ${(await page.content()).length} characters`);
    }
    await page.goto('/confirmations');
    const request = page.locator('#waiting > section', { hasText: 'hostile_text' });
    assert.match(await request.first().innerText(), /<script>window\.hacked = 'preview'<\/script>/);
    assert.match(await request.first().locator('.preview').innerText(), /\\u202eelbisivni/);
    assert.match(await request.first().locator('pre').innerText(), /\\u202eelbisivni/);
    const whole = request.first().locator('a[href^="/v1/confirmations/"]').first();
    assert.match(await request.first().innerText(), /The first 16 KB of 900 KB\./);
    const { args } = JSON.parse(await page.evaluate(async (path) => (await fetch(path)).text(), await whole.getAttribute('href')));
    assert.equal(args.text, text);
    await checkLook(page, 'confirmations-hostile');
    await request.first().getByRole('button', { name: 'Approve', exact: true }).click();
    await page.goto('/calls?tool=hostile_text');
    await page.locator('#calls tbody tr').first().getByRole('link').first().click();
    await page.getByRole('heading', { name: 'hostile_text' }).waitFor();
    assert.match(await page.locator('main').innerText(), /<img src=x onerror/);
    assert.ok((await page.content()).length < 400_000, 'the whole result is in the page');
    const all = page.getByRole('link', { name: 'All of it' }).last();
    const { envelope } = JSON.parse(await page.evaluate(async (path) => (await fetch(path)).text(), await all.getAttribute('href')));
    assert.equal(envelope.data.text, text);
    await checkLook(page, 'call-hostile');
  });
});
