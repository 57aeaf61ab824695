// Tools: the list, a tool's page, the form to try it, tests, the prompt.

import { test } from 'node:test';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { assert, checkLook, openServer, toolwright, withPage } from './support.mjs';

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

/** The form of the tool with every kind of field, with what is required filled in. */
async function nestedForm(page) {
  await page.goto('/tools/nested_form');
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Call nested_form' }) });
  await form.getByLabel(/^title/).fill('Lamp');
  await form.getByLabel(/^city/).fill('Oslo');
  await form.getByLabel('contact is').selectOption({ label: 'by e-mail' });
  await form.getByLabel(/^email/).fill('mira@studio.example');
  return form;
}

/** Calls the tool; returns the arguments that it has received. */
async function received(page) {
  await page.getByRole('button', { name: 'Call nested_form' }).click();
  await page.locator('section', { has: page.getByRole('heading', { name: 'Result' }) }).getByText('"ok": true').waitFor();
  return JSON.parse(await page.locator('section', { has: page.getByRole('heading', { name: 'Result' }) }).locator('pre')
    .first().innerText()).data.received;
}

test('a list begins empty, and its items are added, filled and removed', async () => {
  await withPage(await openServer(), {}, async (page) => {
    const form = await nestedForm(page);
    const tags = form.getByRole('group', { name: 'tags', exact: true });
    assert.equal(await tags.locator('input').count(), 0, 'an optional list begins with an item');
    assert.equal(await tags.locator('.must').count(), 0);
    assert.equal((await received(page)).tags, undefined);
    for (const word of ['lamp', 'brass', 'old']) {
      await tags.getByRole('button', { name: 'Add tags item' }).click();
      await tags.locator('.item input').last().fill(word);
    }
    await tags.getByRole('button', { name: 'Remove tags item' }).nth(1).click();
    await tags.getByRole('button', { name: 'Add tags item' }).click();
    assert.deepEqual((await received(page)).tags, ['lamp', 'old'], 'an item that was left empty is sent');
    assert.deepEqual(await tags.locator('.item input').evaluateAll((all) => all.map((one) => one.value)), ['lamp', 'old']);
    for (let count = 2; count < 5; count += 1) await tags.getByRole('button', { name: 'Add tags item' }).click();
    assert.equal(await tags.getByRole('button', { name: 'Add tags item' }).isVisible(), false, 'more items than allowed');
  });
});

test('items are objects with lists of their own, by reference', async () => {
  await withPage(await openServer(), {}, async (page) => {
    const form = await nestedForm(page);
    const people = form.getByRole('group', { name: 'people', exact: true });
    const add = people.getByRole('button', { name: 'Add people item' });
    for (const [index, name] of ['Ines', 'Jon'].entries()) {
      await add.click();
      const person = people.getByRole('group', { name: 'people item', exact: true }).nth(index);
      await person.getByLabel(/^name/).fill(name);
      await person.getByRole('button', { name: 'Add skills item' }).click();
      await person.locator('[data-list] .item input').fill(`skill of ${name}`);
    }
    assert.equal(await add.isVisible(), false);
    assert.deepEqual((await received(page)).people,
      [{ name: 'Ines', skills: ['skill of Ines'] }, { name: 'Jon', skills: ['skill of Jon'] }]);
  });
});

test('enums, defaults, booleans and formats have fields of their own', async () => {
  await withPage(await openServer(), { allowed: [/status of 422/] }, async (page) => {
    const form = await nestedForm(page);
    const plain = await received(page);
    assert.deepEqual([plain.priority, plain.count, plain.is_public, plain.level, plain.due], ['normal', 2, false, undefined, undefined]);
    await form.getByLabel(/^priority/).selectOption('high');
    await form.getByLabel(/^level/).selectOption('3');
    await form.getByLabel(/^is_public/).selectOption('true');
    await form.getByLabel(/^count/).fill('4');
    await form.getByLabel(/^due/).fill('2026-11-20');
    await form.getByLabel(/^starts/).fill('2026-11-20T09:00:00Z');
    await form.getByLabel(/^website/).fill('https://studio.example/lamp');
    const { priority, level, is_public: isPublic, count, due, starts, website } = await received(page);
    assert.deepEqual([priority, level, isPublic, count, due, starts, website],
      ['high', 3, true, 4, '2026-11-20', '2026-11-20T09:00:00Z', 'https://studio.example/lamp']);
    for (const [label, text, message] of [['count', 'many', /whole number/], ['count', '12', /<= 9/],
      ['starts', 'tomorrow', /date-time/]]) {
      await form.getByLabel(new RegExp(`^${label}`)).fill(text);
      await page.getByRole('button', { name: 'Call nested_form' }).click();
      const field = page.locator('.field', { has: page.getByLabel(new RegExp(`^${label}`)) }).first();
      await field.locator('.error').filter({ hasText: message }).waitFor();
      assert.equal(await form.getByLabel(new RegExp(`^${label}`)).inputValue(), text, 'what was typed is lost');
      await form.getByLabel(/^count/).fill('4');
    }
  });
});

test('one of several forms is chosen, and only that one is sent', async () => {
  await withPage(await openServer(), {}, async (page) => {
    const form = await nestedForm(page);
    await form.getByLabel('contact is').selectOption({ label: 'by telephone' });
    assert.equal(await form.getByLabel(/^email/).isVisible(), false);
    await form.getByLabel(/^phone/).fill('030 23125014');
    assert.deepEqual((await received(page)).contact, { phone: '030 23125014' });
    assert.equal(await form.getByLabel(/^phone/).isVisible(), true, 'the chosen form is hidden after the call');
  });
});

test('without scripts a list can be filled in', async () => {
  const server = await openServer();
  const text = await (await fetch(`${server.url}/tools/nested_form`)).text();
  assert.match(text, /<noscript><div class="item">[^]*?name="args\/tags\/0"/);
});

test('a call is saved as a test of the tool', async () => {
  const server = await openServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/tools/write_note');
    await page.getByLabel(/^note/).fill('buy milk');
    await page.getByRole('button', { name: 'Call write_note' }).click();
    await page.getByLabel('Save this call as a test').fill('a note is returned');
    await page.getByRole('button', { name: 'Save as test' }).click();
    const notice = page.locator('.notice.ok', { hasText: 'The test is saved.' });
    assert.match(await notice.innerText(), /tests\/a-note-is-returned\.json/);
    await checkLook(page, 'tool-saved');
  });
  const tests = path.join(server.project, 'tools/write-note/tests');
  const texts = fs.readdirSync(tests).map((name) => fs.readFileSync(path.join(tests, name), 'utf8'));
  assert.ok(texts.some((text) => text.includes('buy milk')), texts.join());
  const ran = JSON.parse(toolwright(server.project, 'test', '--only', 'write_note', '--format', 'json'));
  assert.ok(ran.ok && ran.tests.length === 1, JSON.stringify(ran));
});

test('a call in another mode is copied as curl, which makes the same call', async () => {
  const server = await openServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/tools/write_note');
    await page.getByLabel('Mode').selectOption('voice');
    await page.getByLabel(/^note/).fill("Ines' note: \u202E<b>");
    await page.getByRole('button', { name: 'Call write_note' }).click();
    const result = page.locator('section', { has: page.getByRole('heading', { name: 'Result' }) });
    await result.getByText('"ok": true').waitFor();
    assert.equal(await page.getByLabel('Mode').inputValue(), 'voice');
    assert.match(await result.locator('pre').innerText(), /Ines' note: \\u202e<b>/);
    await result.getByRole('button', { name: 'Copy as curl' }).click();
    await result.getByRole('button', { name: 'Copied' }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    const { ok, data, meta } = JSON.parse(execFileSync('bash', ['-c', `${command} --silent`], { encoding: 'utf8' }));
    assert.deepEqual([ok, data], [true, { note: "Ines' note: \u202E<b>" }]);
    // The page of the form's call, and the session of it, say the mode.
    await result.locator('header a').click();
    await page.getByRole('link', { name: 'its session' }).click();
    assert.match(await page.locator('.stats').innerText(), /Mode\s*voice/i);
    assert.ok(meta.executionId);
  });
});

test('the page of a tool has its last calls', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools/busy');
    await page.getByRole('button', { name: 'Call busy' }).click();
    const recent = page.getByRole('region', { name: 'Recent calls' });
    await recent.locator('tbody tr', { hasText: 'TRANSIENT' }).first().waitFor();
    await recent.locator('tbody').getByRole('link', { name: 'busy' }).first().click();
    await page.getByRole('heading', { name: 'Steps' }).waitFor();
    const steps = await page.locator('.steps tbody th').allInnerTexts();
    assert.deepEqual(steps.filter((step) => /run|backoff/.test(step)), ['run 1', 'backoff', 'run 2']);
  });
});

test('every provider has its form of a tool, and says what it cannot express', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/tools/nested_form?tab=models');
    const views = page.locator('.views > section');
    const titles = await views.getByRole('heading').allInnerTexts();
    assert.ok(titles.length >= 8, titles.join());
    for (const name of ['OpenAI', 'Anthropic', 'Gemini', 'Ollama', 'Model Context Protocol']) {
      assert.ok(titles.some((title) => title.includes(name)), `${name} is not among ${titles}`);
    }
    const losses = await views.locator('li').allInnerTexts();
    assert.ok(losses.length >= 3, losses.join('\n'));
    assert.ok(losses.some((loss) => loss.startsWith('/')), losses.join('\n'));
    const complete = await views.filter({ hasText: 'nothing lost' }).count();
    const lossy = await views.filter({ has: page.locator('.chip.warn', { hasText: /^\d+ lost$/ }) }).count();
    assert.deepEqual([complete + lossy, complete > 0, lossy > 0], [titles.length, true, true]);
  });
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
    await page.goto('/tools/hostile_text?tab=documentation');
    await page.getByText('This is only the beginning.').waitFor();
    assert.ok((await page.content()).length < 500_000, 'the whole documentation is in the page');
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
