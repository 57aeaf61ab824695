// Tools: the list, a tool's page, the form to try it, tests, the prompt.

import { test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';

import { assert, checkLook, openServer, withPage } from './support.mjs';

test('tools are searched and filtered, and the filters are in the address', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools');
    await page.getByRole('link', { name: 'kb_search' }).waitFor();
    await checkLook(page, 'tools');
    await page.getByLabel('Search tools by name or words').fill('calendar');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.waitForURL(/q=calendar/);
    assert.equal(await page.getByRole('link', { name: 'kb_search' }).count(), 0);
    await page.getByRole('link', { name: 'calendar_create_event' }).waitFor();
    await page.goto('/tools?q=no-such-tool');
    await page.getByText('No tool matches.').waitFor();
  });
});

test('a tool shows its documentation, its parameters and what models see', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools/calendar_propose_event');
    const tabs = page.getByRole('navigation', { name: 'Parts of the tool' });
    for (const [name, expected] of [['Documentation', 'No calendar has been changed'], ['Parameters', 'duration_minutes'],
      ['models', 'calendar_propose_event']]) {
      await tabs.getByRole('link', { name: new RegExp(name, 'i') }).click();
      await page.locator('main .panel', { hasText: expected }).first().waitFor();
      await checkLook(page, `tool-${name.toLowerCase()}`);
    }
  });
});

test('a nested form is filled, the error of the server is at its field, and the result is shown', async () => {
  await withPage(await openServer(), { allowed: [/status of 422/] }, async (page) => {
    await page.goto('/tools/nested_form');
    const form = page.locator('form', { has: page.getByRole('button', { name: 'Call nested_form' }) });
    await form.getByLabel(/^title/).fill('ab');
    await form.getByLabel(/^city/).fill('Oslo');
    await form.getByLabel(/^street/).fill('Storgata 1');
    await form.getByLabel(/^email/).fill('mira@studio.example');
    await form.getByRole('button', { name: /Add/ }).first().click();
    await form.locator('[data-list] .item input').first().fill('lamp');
    await form.getByRole('button', { name: 'Call nested_form' }).click();
    const field = page.locator('.field', { has: page.getByLabel(/^title/) }).first();
    await field.locator('.error').waitFor();
    await checkLook(page, 'tool-try-error');
    assert.equal(await page.getByLabel(/^city/).inputValue(), 'Oslo', 'what was typed is lost');
    await page.getByLabel(/^title/).fill('Lamp');
    await page.getByRole('button', { name: 'Call nested_form' }).click();
    const result = page.locator('section', { has: page.getByRole('heading', { name: 'Result' }) });
    await result.getByText('"received"').waitFor();
    const text = await result.innerText();
    for (const part of ['"Oslo"', '"Storgata 1"', '"lamp"', '"mira@studio.example"', '"normal"', 'ms']) {
      assert.ok(text.includes(part), `the result has no ${part}: ${text}`);
    }
    await checkLook(page, 'tool-try');
  });
});

test('a call is saved as a test of the tool', async () => {
  const server = await openServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/tools/validate_email');
    await page.getByLabel(/^email/).fill('mira@studio.example');
    await page.getByRole('button', { name: 'Call validate_email' }).click();
    await page.getByLabel('Save this call as a test').fill('an address of the studio is valid');
    await page.getByRole('button', { name: 'Save as test' }).click();
    await page.locator('.notice').first().waitFor();
  });
  const tests = path.join(server.project, 'tools/validate-email/tests');
  const texts = fs.readdirSync(tests).map((name) => fs.readFileSync(path.join(tests, name), 'utf8'));
  assert.ok(texts.some((text) => text.includes('mira@studio.example')), texts.join());
});

test('a tool that asks first waits for approval when it is tried', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools/delete_item');
    await page.getByLabel(/^id/).fill('31');
    await page.getByRole('button', { name: 'Call delete_item' }).click();
    await page.getByText('A person has to approve this call.').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Confirmations' }).click();
    await page.getByText('Delete item 31').waitFor();
  });
});

test('hostile documentation, names and descriptions stay text', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools?q=hostile');
    assert.match(await page.locator('main').innerText(), /<script>window\.hacked = 'summary'<\/script>/);
    await page.getByRole('link', { name: 'hostile_text' }).click();
    const links = await page.getByRole('navigation', { name: 'Parts of the tool' }).getByRole('link').evaluateAll(
      (all) => all.map((link) => link.getAttribute('href')));
    for (const link of links) {
      await page.goto(link);
      assert.equal(await page.locator('main :is(img, iframe, script, a[href^="javascript"], a[href^="data"])').count(), 0, link);
    }
    await page.goto('/tools/hostile_text');
    await page.getByLabel(/^text/).fill('<script>window.hacked = 1</script>\u202E</textarea>');
    await page.getByRole('button', { name: 'Call hostile_text' }).click();
    await page.getByText('A person has to approve this call.').waitFor();
    await checkLook(page, 'tool-hostile');
  });
});

test('the prompt is shown for each mode with an estimate of its tokens', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/prompt');
    assert.match(await page.locator('main').innerText(), /tokens, estimated/);
    await checkLook(page, 'prompt');
    await page.getByRole('link', { name: 'voice', exact: true }).click();
    await page.waitForURL(/mode=voice/);
    await page.locator('pre', { hasText: 'kb_search' }).first().waitFor();
  });
});
