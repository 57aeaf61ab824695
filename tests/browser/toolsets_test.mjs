// Toolsets: versions, what changes between two, the sessions of each; the build while the tools are watched.

import { test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';

import { api, assert, checkLook, toolFile, watchingServer, withPage } from './support.mjs';

/** Replaces a text in a file of a tool. */
function edit(server, file, from, to) {
  const place = toolFile(server, file);
  const text = fs.readFileSync(place, 'utf8');
  assert.ok(text.includes(from), `${file} has no ${from}`);
  fs.writeFileSync(place, text.replace(from, to));
}

const findings = (page) => page.getByRole('region', { name: 'Build' });
const rows = (page) => page.getByRole('region', { name: 'Toolsets' }).locator('tbody tr');

test('findings of the build appear with their source lines, and the page follows', async () => {
  const server = await watchingServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/');
    await findings(page).waitFor();
    const before = await findings(page).locator('.finding', { hasText: 'get-weather' }).count();
    await page.getByLabel('Your key').fill('twk_of_the_test');
    edit(server, 'get-weather/schema.json', '"version": "1.0.0"', '"version": "not a version"');
    const found = findings(page).locator('.finding', { hasText: 'get-weather/schema.json' });
    await found.locator('pre', { hasText: '"version": "not a version"' }).waitFor();
    await page.getByRole('heading', { name: 'The tools do not build' }).waitFor();
    await checkLook(page, 'home-findings');
    edit(server, 'get-weather/schema.json', '"version": "not a version"', '"version": "1.0.0"');
    await findings(page).locator('.finding', { hasText: 'not a version' }).waitFor({ state: 'detached' });
    assert.equal(await findings(page).locator('.finding', { hasText: 'get-weather' }).count(), before);
    assert.equal(await page.getByLabel('Your key').inputValue(), 'twk_of_the_test', 'the page was loaded again');
  });
});

/** Edits the weather tool and waits until the toolsets page has a new version; returns the versions before and after. */
async function change(server, page, make) {
  await page.goto('/toolsets');
  const current = async () => (await rows(page).filter({ hasText: 'current' }).locator('b').first().innerText()).trim();
  const before = await current();
  await make();
  for (;;) {
    await page.goto('/toolsets');
    const after = await current();
    if (after !== before) return [before, after];
  }
}

test('two toolsets are compared in schema and documentation, and each says how many sessions it has', async () => {
  const server = await watchingServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/toolsets');
    const sessions = async (id) => rows(page).filter({ hasText: id }).locator('td').nth(3).innerText();
    const { sessionId } = await api(server, null, 'POST', '/v1/sessions', { mode: 'text' });
    const [before, after] = await change(server, page, () => {
      edit(server, 'get-weather/doc.md', '# ', '# The sky over ');
      edit(server, 'get-weather/schema.json', '"version": "1.0.0"', '"version": "1.1.0"');
    });
    assert.equal(await sessions(before), '1');
    assert.equal(await sessions(after), '0');
    await api(server, null, 'POST', '/v1/sessions', { mode: 'text' });
    await page.getByLabel('Compare').selectOption(before);
    await page.getByLabel('with', { exact: true }).selectOption(after);
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.waitForURL(/from=.*&to=/);
    const comparison = page.locator('#comparison');
    assert.match(await comparison.innerText(), /0 added, 0 removed, 1 changed/);
    await comparison.getByText('1.0.0 → 1.1.0').waitFor();
    await comparison.locator('ins', { hasText: '"version": "1.1.0"' }).waitFor();
    await comparison.locator('del', { hasText: '"version": "1.0.0"' }).waitFor();
    await comparison.locator('ins', { hasText: 'The sky over' }).waitFor();
    assert.equal(await sessions(after), '1');
    await checkLook(page, 'toolsets');
    await api(server, null, 'DELETE', `/v1/sessions/${sessionId}`);
  });
});

test('after a hangup the page has the new toolset, before any session uses it', async () => {
  const server = await watchingServer();
  await withPage(server, {}, async (page) => {
    const tool = path.dirname(toolFile(server, 'flaky/schema.json'));
    const [before, after] = await change(server, page, async () => {
      fs.rmSync(tool, { recursive: true });
      server.child.kill('SIGHUP');
    });
    await page.goto(`/toolsets?from=${encodeURIComponent(before)}&to=${encodeURIComponent(after)}`);
    assert.match(await page.locator('#comparison').innerText(), /0 added, 1 removed, 0 changed/);
    await page.locator('#comparison .chip', { hasText: 'flaky' }).waitFor();
  });
});
