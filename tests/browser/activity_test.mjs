// Calls, confirmations, sessions, knowledge base, metrics and audit.

import { test } from 'node:test';

import { api, assert, checkLook, keyServer, openServer, withPage } from './support.mjs';

const call = (server, key, tool, args, more = {}) => api(server, key, 'POST', `/v1/tools/${tool}/call`, { args, ...more });

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
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'weather in Oslo' }] };
  const answer = await fetch(`${server.url}/api/chat`, { method: 'POST',
    headers: { authorization: `Bearer ${member}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'for-the-session-page', messages: [message] }) });
  const session = answer.headers.get('x-toolwright-session');
  await answer.text();
  await withPage(server, { signedInAs: 'member' }, async (page) => {
    await page.goto('/sessions');
    await checkLook(page, 'sessions');
    await page.getByRole('link', { name: session }).click();
    const text = await page.locator('main').innerText();
    for (const part of ['weather in Oslo', 'It is 5 degrees.', 'get_weather', 'Budgets', 'State']) {
      assert.ok(text.includes(part), `the page has no ${part}`);
    }
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
    await page.locator('.results li', { hasText: 'person:ines_halloran' }).waitFor();
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

test('metrics are shown as charts with tables beside them', async () => {
  const server = await keyServer();
  await call(server, server.keys.admin, 'validate_email', { email: 'ines@lanternfield.example' });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    await page.goto('/usage');
    await page.getByRole('region', { name: 'By tool and version' }).getByText('validate_email').waitFor();
    assert.ok(await page.locator('main svg').count() >= 2, 'there are no charts');
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
    await page.locator('.notice').waitFor();
    await checkLook(page, 'audit-verified');
  });
});

test('hostile text in arguments, results and names stays text', async () => {
  const server = await keyServer();
  const { admin, member } = server.keys;
  const text = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\u202Eelbisivni ${'x'.repeat(1000)}`;
  const { sessionId } = await api(server, member, 'POST', '/v1/sessions', { mode: 'text' });
  await call(server, member, 'hostile_text', { text }, { sessionId });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    for (const path of ['/confirmations', '/calls', '/audit', '/sessions', `/sessions/${sessionId}`]) {
      await page.goto(path);
      assert.equal(await page.locator('main :is(img, iframe), main script').count(), 0, path);
    }
    await page.goto('/confirmations');
    const request = page.locator('#waiting > section', { hasText: 'hostile_text' });
    assert.match(await request.first().innerText(), /<script>window\.hacked = 'preview'<\/script>/);
    await request.first().getByRole('button', { name: 'Approve', exact: true }).click();
    await page.goto('/calls?tool=hostile_text');
    await page.locator('#calls tbody tr').first().getByRole('link').first().click();
    await page.getByRole('heading', { name: 'hostile_text' }).waitFor();
    assert.match(await page.locator('main').innerText(), /<img src=x onerror/);
    await checkLook(page, 'call-hostile');
  });
});
