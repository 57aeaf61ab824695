// Signing in with two roles, and the first page.

import { test } from 'node:test';

import { assert, checkLook, keyServer, openServer, watchingServer, withPage } from './support.mjs';

test('the first page says what runs, what is missing and how to connect, in less than 100 KB', async () => {
  const server = await openServer();
  await withPage(server, {}, async (page) => {
    const bodies = [];
    page.on('response', (response) => bodies.push(response.body().catch(() => '')));
    await page.goto('/', { waitUntil: 'networkidle' });
    // A stream of events has no end, and nothing is sent in it yet.
    const sizes = await Promise.all(bodies.map((body) => Promise.race([body, page.waitForTimeout(2000).then(() => '')])));
    const bytes = sizes.reduce((sum, body) => sum + body.length, 0);
    assert.ok(bytes > 1000 && bytes < 100_000, `${bytes} bytes`);
    const text = await page.locator('main').innerText();
    assert.match(text, /No language model is set up/);
    for (const recipe of ['curl', 'Claude', 'VS Code', 'Cursor', 'Open WebUI', 'useChat', 'Python']) {
      assert.ok(text.includes(recipe), `no recipe for ${recipe}`);
    }
    assert.ok((await page.locator('main').textContent()).includes(`${server.url}/mcp`), 'the address is not filled in');
    await checkLook(page, 'home');
  });
});

test('a key of the user is filled into the recipes and sent nowhere', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/');
    const requests = [];
    page.on('request', (request) => requests.push(`${request.url()} ${request.postData()}`));
    await page.getByLabel('Your key').fill('twk_of_the_test');
    assert.match(await page.locator('#connect').textContent(), /twk_of_the_test/);
    assert.deepEqual(requests.filter((request) => request.includes('twk_of_the_test')), []);
  });
});

test('a browser without a key is asked to sign in and comes back to the page it wanted', async () => {
  const server = await keyServer();
  await withPage(server, { allowed: [/status of 422/] }, async (page) => {
    await page.goto('/tools?q=kb');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await checkLook(page, 'sign-in');
    await page.getByLabel('API key').fill('twk_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await checkLook(page, 'sign-in-refused');
    await page.getByLabel('API key').fill(server.keys.member);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/tools?q=kb');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.goto('/tools');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });
});

test('a member sees neither audit nor metrics; an admin does', async () => {
  const server = await keyServer();
  await withPage(server, { signedInAs: 'member', allowed: [/status of 403/] }, async (page) => {
    await page.goto('/');
    const links = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
    assert.ok(links.some((link) => link.includes('Chat')) && !links.some((link) => /Audit|Metrics|Toolsets/.test(link)),
      links.join());
    for (const path of ['/audit', '/usage', '/toolsets']) {
      const response = await page.goto(path);
      assert.equal(response.status(), 403, path);
      await page.locator('h1').waitFor();
    }
    await checkLook(page, 'forbidden');
  });
  await withPage(server, { signedInAs: 'admin' }, async (page) => {
    await page.goto('/');
    const links = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
    for (const name of ['Audit', 'Metrics', 'Toolsets']) assert.ok(links.some((link) => link.includes(name)), name);
    await checkLook(page, 'home-admin');
  });
});

test('a request of another site changes nothing', async () => {
  const server = await keyServer();
  await withPage(server, { signedInAs: 'member', allowed: [/status of 403/] }, async (page) => {
    const status = await page.evaluate(async () => (await fetch('/api/chat', { method: 'POST',
      headers: { 'content-type': 'application/json' }, body: '{}' })).status);
    assert.equal(status, 403, 'a request with the cookie and without the token of the page');
  });
});

test('on a phone the menu opens and closes', async () => {
  await withPage(await openServer(), { viewport: { width: 390, height: 844 } }, async (page) => {
    await page.goto('/');
    const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Tools', exact: true });
    assert.equal(await link.isVisible(), false);
    await page.getByRole('link', { name: 'Menu', exact: true }).click();
    await link.click();
    await page.waitForURL('**/tools');
  });
});

test('the first Tab leads past the navigation', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.closest('main') !== null), true);
  });
});

test('the setup says what is broken, and how to fix it', async () => {
  await withPage(await watchingServer(), {}, async (page) => {
    await page.goto('/');
    const row = page.locator('#setup li').filter({ has: page.getByText('calendar', { exact: true }) });
    await row.locator('.chip.bad', { hasText: 'broken' }).waitFor();
    assert.match(await row.innerText(), /127\.0\.0\.1:9[^]*Fix[^]*\[calendar\]/);
    assert.match(await page.locator('#state').innerText(), /The calendar does not work:/);
    const working = page.locator('#setup li').filter({ has: page.getByText('zoom', { exact: true }) });
    await working.locator('.chip.ok').waitFor();
    await checkLook(page, 'home-broken');
  });
});
