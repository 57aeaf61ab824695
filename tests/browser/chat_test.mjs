// Chat: streaming, calls, approvals, stop, reload, citations, errors, the offline agent, hostile texts.

import { test } from 'node:test';

import { api, assert, checkLook, keyServer, openServer, withPage } from './support.mjs';

/** Sends a message and waits until the agent has answered it or asks something. */
async function say(page, text) {
  const before = await page.locator('.msg.user').count();
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('.msg.user').nth(before).waitFor();
  await page.locator('#chat[aria-busy="false"]').waitFor();
}

const lastAnswer = (page) => page.locator('.msg[data-role="assistant"]').last();

test('without a model the offline agent answers with citations, and the page says how to set one up', async () => {
  const server = await openServer();
  await withPage(server, {}, async (page) => {
    await page.goto('/chat');
    assert.match(await page.locator('main').innerText(), /No language model is set up/);
    await checkLook(page, 'chat-new');
    await say(page, 'Who founded the studio?');
    assert.match(await lastAnswer(page).innerText(), /I am the offline agent, not a language model/);
    const citation = lastAnswer(page).getByRole('link', { name: 'person:ines_halloran' });
    await citation.click();
    await page.getByRole('heading', { name: 'Ines Halloran' }).waitFor();
  });
});

test('a suggestion fills the field, Shift+Enter breaks the line, Enter sends', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/chat');
    await page.locator('[data-suggestion]').first().click();
    const field = page.getByRole('textbox', { name: 'Message' });
    assert.match(await field.inputValue(), /^\/\w+ \{/);
    await field.fill('/validate_email');
    await field.press('Shift+Enter');
    await field.pressSequentially('{"email": "mira@studio.example"}');
    assert.equal(await field.inputValue(), '/validate_email\n{"email": "mira@studio.example"}');
    await field.press('Enter');
    await page.locator('.call b', { hasText: 'validate_email' }).waitFor();
    assert.equal(await field.inputValue(), '');
  });
});

test('the result of a background call takes the place of its task when it is done, also after a reload', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/chat');
    await say(page, '/write_report {"topic": "sales"}');
    const card = page.locator('details.call', { hasText: 'write_report' });
    await card.locator('summary').click();
    await card.locator('pre', { hasText: 'A report about sales.' }).waitFor();
    assert.doesNotMatch(await card.innerText(), /runs in the background/);
    await page.reload();
    await card.locator('summary').click();
    await card.locator('pre', { hasText: 'A report about sales.' }).waitFor();
  });
});

test('an answer streams, its call is a card with arguments, result and duration, and links to its page', async () => {
  await withPage(await keyServer(), { signedInAs: 'admin' }, async (page) => {
    await page.goto('/chat');
    await say(page, 'weather in Oslo');
    assert.match(await lastAnswer(page).innerText(), /It is 5 degrees\./);
    const card = page.locator('details.call').first();
    await card.locator('summary').click();
    assert.match(await card.innerText(), /get_weather[^]*\d+ ms|\d\.\d s/);
    assert.match(await card.locator('pre').first().innerText(), /"city": "Oslo"/);
    assert.match(await card.locator('pre').nth(1).innerText(), /"t": 5/);
    await say(page, 'break it');
    assert.match(await lastAnswer(page).innerText(), /flaky[^]*failed[^]*That failed\./);
    await card.getByRole('link', { name: 'Open the call' }).click();
    await page.getByRole('heading', { name: 'get_weather' }).waitFor();
  });
});

test('reasoning is collapsed', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    await say(page, 'think about it');
    assert.match(await lastAnswer(page).innerText(), /I have thought about it\./);
    const reasoning = lastAnswer(page).locator('details.reasoning');
    assert.equal(await reasoning.getAttribute('open'), null);
    await reasoning.locator('summary').click();
    assert.match(await reasoning.innerText(), /First I think about it\./);
  });
});

test('a call that needs approval is asked about, survives a reload, and runs once when it is approved', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    await say(page, 'book a meeting with Ines');
    const ask = page.getByRole('group', { name: 'Confirmation of calendar_create_event' });
    assert.match(await ask.innerText(), /Create the event “Meeting with Ines Halloran”[^]*expires in (9|10):\d\d/);
    await checkLook(page, 'chat-approval');
    await page.reload();
    await ask.getByRole('button', { name: 'Approve' }).click();
    await page.locator('#thread').getByText('The meeting is booked').waitFor();
    await ask.waitFor({ state: 'detached' });
    await checkLook(page, 'chat');
    // The conversation is in the list, and opens from there.
    await page.goto('/chat');
    await page.getByRole('navigation', { name: 'Conversations' }).getByText('book a meeting with Ines').first().click();
    await page.locator('#thread').getByText('The meeting is booked').waitFor();
    assert.equal(await page.locator('.call b', { hasText: 'calendar_create_event' }).count(), 1);
  });
});

test('an approval is edited, with the error at the field, and another is rejected', async () => {
  await withPage(await keyServer(), { signedInAs: 'member', allowed: [/status of 400/] }, async (page) => {
    await page.goto('/chat');
    await say(page, 'delete 7');
    const ask = page.getByRole('group', { name: 'Confirmation of delete_item' });
    await ask.getByRole('button', { name: 'Edit' }).click();
    const field = ask.getByLabel('Arguments as JSON');
    for (const [args, error] of [['{"id": ', /not JSON/], ['{"id": "x"}', /\/id must be integer/]]) {
      await field.fill(args);
      await ask.getByRole('button', { name: 'Approve with these arguments' }).click();
      await page.locator('.ask .error', { hasText: error }).waitFor();
    }
    await field.fill('{"id": 8}');
    await ask.getByRole('button', { name: 'Approve with these arguments' }).click();
    await page.locator('#thread').getByText('Deleted.').waitFor();
    await page.locator('.call', { hasText: 'delete_item' }).locator('summary').click();
    assert.match(await page.locator('.call pre').nth(1).innerText(), /"deleted": 8/);
    await say(page, 'delete 9');
    await ask.getByRole('button', { name: 'Reject' }).click();
    await page.locator('#thread').getByText('Not deleted.').waitFor();
    assert.match(await page.locator('.call').last().innerText(), /rejected/);
  });
});

test('an answer is stopped; after a reload a running one goes on', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.fill('count');
    await field.press('Enter');
    await page.getByText('one two').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The answer was stopped.').waitFor();
    assert.doesNotMatch(await lastAnswer(page).innerText(), /twelve/);
    await field.fill('count slowly to twelve');
    await field.press('Enter');
    await lastAnswer(page).getByText('one two').waitFor();
    await page.reload();
    await lastAnswer(page).getByText('eleven twelve').waitFor();
    assert.equal(await page.locator('.msg').count(), 4);
  });
});

test('a model that fails is reported in plain words, and the message can be sent again', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    await say(page, 'crash now');
    const notice = page.locator('#chat-notice');
    await notice.getByRole('button', { name: 'Try again' }).waitFor();
    assert.doesNotMatch(await notice.innerText(), /secret detail|undefined|\[object/);
  });
});

test('an approval that someone else gives continues the conversation', async () => {
  const server = await keyServer();
  await withPage(server, { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    await say(page, 'delete 11');
    const ask = page.getByRole('group', { name: 'Confirmation of delete_item' });
    await ask.waitFor();
    const { confirmations } = await api(server, server.keys.admin, 'GET', '/v1/confirmations');
    const { confirmationId } = confirmations.find(({ args }) => args.id === 11);
    await api(server, server.keys.admin, 'POST', `/v1/confirmations/${confirmationId}/approve`, {});
    await ask.waitFor({ state: 'detached' });
    assert.match(await page.locator('.call').last().innerText(), /delete_item/);
  });
});

test('hostile text in messages, answers, arguments, results and previews stays text', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    const attacks = ['<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 2">',
      '[link](javascript:window.hacked=3)', '![picture](https://tracker.example/pixel.png)', '\u202Eelbisivni'];
    for (const attack of attacks) {
      await say(page, `say ${attack}`);
      const [question, answer] = [await page.locator('.msg.user').last().innerText(), await lastAnswer(page).innerText()];
      assert.ok(question.includes(attack), question);
      assert.ok(answer.includes(attack.replace(/^!\[(.*)\].*/, '$1').slice(0, 12)), answer);
    }
    assert.equal(await page.locator('#thread :is(script, img, iframe, a[href^="javascript"])').count(), 0);
    await say(page, `run hostile_text ${JSON.stringify({ text: attacks.join(' ') })}`);
    const ask = page.getByRole('group', { name: 'Confirmation of hostile_text' });
    assert.match(await ask.innerText(), /<script>window\.hacked = 'preview'<\/script>[^]*\\u202eelbisivni/);
    await ask.getByRole('button', { name: 'Approve' }).click();
    await page.locator('#thread').getByText('The tool has answered.').waitFor();
    await page.locator('.call').last().locator('summary').click();
    assert.match(await page.locator('.call').last().innerText(), /javascript:window\.hacked/);
    assert.equal(await page.locator('#thread :is(script, img, iframe, a[href^="javascript"])').count(), 0);
    await checkLook(page, 'chat-hostile');
  });
});

test('a message of a megabyte is answered and shown', async () => {
  await withPage(await keyServer(), { signedInAs: 'member' }, async (page) => {
    await page.goto('/chat');
    await say(page, `say ${'<b>megabyte</b> '.repeat(70_000)}`);
    assert.ok((await lastAnswer(page).innerText()).length > 1_000_000);
    assert.equal(await page.locator('#thread b b').count(), 0);
  });
});

test('markdown of any size becomes nodes in linear time', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/chat');
    const shown = await page.evaluate(async () => {
      const { renderMarkdown } = await import('/assets/markdown.js');
      const html = (text) => {
        const node = document.createElement('div');
        renderMarkdown(node, text);
        return node.innerHTML;
      };
      for (const sign of ['*', '[', '`', '> ', '- a\n', 'a\n\n', '|a\n|-\n', '[a](', '<']) html(sign.repeat(100_000));
      return ['**bold** *it* `a<b` snake_case_name', '- a\n  - b\n1. c', '```js\n<b>\n```', '|a|b|\n|-|-|\n|1|2|',
        '[x](https://a.example/) [y](javascript:1)', '> quote'].map(html);
    });
    const link = 'target="_blank" rel="noopener noreferrer nofollow"';
    assert.deepEqual(shown, [
      '<p dir="auto"><strong>bold</strong> <em>it</em> <code>a&lt;b</code> snake_case_name</p>',
      '<ul><li dir="auto">a<ul><li dir="auto">b</li></ul></li></ul><ol><li dir="auto">c</li></ol>',
      '<pre tabindex="0"><code>&lt;b&gt;</code></pre>',
      '<div class="scroll" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead>'
        + '<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>',
      `<p dir="auto"><a href="https://a.example/" ${link}>x</a> [y](javascript:1)</p>`,
      '<blockquote><p dir="auto">quote</p></blockquote>']);
  });
});
