// Voice: a conversation with a fake microphone against a stand-in of Gemini Live; typed messages; buttons; a page without a
// voice model.

import { test } from 'node:test';

import { api, assert, checkLook, openServer, voiceServer, withPage } from './support.mjs';

const start = (page) => page.getByRole('button', { name: 'Start talking' });

test('without a voice model the page says how to set one up, and answers in writing', async () => {
  await withPage(await openServer(), {}, async (page) => {
    await page.goto('/');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Voice' }).click();
    const main = page.locator('main');
    assert.match(await main.innerText(), /No voice model is set up[^]*provider = "gemini-live"[^]*GEMINI_API_KEY/);
    assert.match(await main.innerText(), /Tools by voice[^]*kb_search/);
    await checkLook(page, 'voice-setup');
    await page.getByRole('textbox', { name: 'Message' }).fill('Who founded the studio?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('link', { name: 'person:ines_halloran' }).first().waitFor();
  });
});

test('a spoken conversation: interrupted, with a call, a spoken confirmation, and a block with a countdown', async () => {
  const server = await voiceServer('voice-spoken', 'slow 120', 'call lookup {"query": "quiet"}',
    'call send_note {"to": "mira"}', 'yes please',
    'call ignore_user {"duration_seconds": 60, "farewell_message": "That is enough."}');
  await withPage(server, {}, async (page) => {
    await page.goto('/talk');
    await start(page).click();
    await page.locator('#voice-state', { hasText: 'Listening' }).waitFor();
    await page.waitForFunction(() => document.getElementById('level-input').value > 0.1);
    // The first utterance gets a long answer, which the second one interrupts.
    await page.locator('#voice-state', { hasText: 'Speaking' }).waitFor();
    const first = page.locator('.msg[data-role="assistant"]').first();
    await first.getByText('interrupted', { exact: true }).waitFor();
    assert.match(await first.innerText(), /^Agent:\s*This is a very long/);
    const call = page.locator('.call', { hasText: 'lookup' });
    await call.getByText('done').waitFor();
    await page.locator('.msg[data-role="assistant"]', { hasText: 'Studio B is quiet.' }).waitFor();
    // The third asks for something that has to be approved; the fourth approves it.
    const question = page.getByRole('group', { name: 'Confirmation of send_note' });
    await question.waitFor();
    assert.match(await question.innerText(), /mira[^]*expires in \d+:\d\d[^]*Say yes or no/);
    await page.locator('.answered', { hasText: 'Approved by voice' }).waitFor();
    await page.locator('.call', { hasText: 'send_note' }).last().getByText('done').waitFor();
    // The fifth is rude.
    await page.locator('#countdown').waitFor();
    assert.match(await page.locator('#countdown').innerText(), /You can talk again in (1:00|0:5\d)/);
    await page.locator('#countdown-left', { hasText: /0:5[0-6]/ }).waitFor();
    assert.ok(await start(page).isDisabled());
    await checkLook(page, 'voice');
    // The server refuses the client as well.
    await page.reload();
    await start(page).click();
    await page.locator('#countdown-left', { hasText: /0:\d\d/ }).waitFor();
    const heard = await page.evaluate(() => document.querySelectorAll('.msg').length);
    assert.equal(heard, 0);
    // What was spoken is measured.
    await page.goto('/usage');
    for (const name of ['Voice: first audio', 'Voice: calls']) {
      const chart = page.locator('section', { has: page.getByRole('heading', { name, exact: true }) });
      await chart.getByText('As a table').click();
      const cells = await chart.locator('td.num').allInnerTexts();
      assert.ok(cells.some((cell) => /\d+ ms|\d s/.test(cell)), `${name} has no data: ${cells}`);
    }
  });
});

test('a message is typed while the microphone is off, a question is answered by a button, and the session is there', async () => {
  await withPage(await voiceServer('voice-typed', 'say I heard you'), {}, async (page) => {
    await page.goto('/talk');
    await checkLook(page, 'voice-new');
    await start(page).focus();
    await page.keyboard.press('Enter');
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.waitFor();
    await page.getByRole('button', { name: 'Mute' }).click();
    await page.locator('#voice-state', { hasText: 'Microphone off' }).waitFor();
    await field.fill('<img src=x onerror="window.hacked=1">');
    await field.press('Enter');
    await page.locator('.msg[data-role="assistant"]', { hasText: 'You said: <img' }).waitFor();
    await field.fill('call send_note {"to": "jon"}');
    await field.press('Enter');
    const question = page.getByRole('group', { name: 'Confirmation of send_note' });
    await question.waitFor();
    await checkLook(page, 'voice-approval');
    await question.getByRole('button', { name: 'Reject' }).click();
    await page.locator('.answered', { hasText: 'Rejected here' }).waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    const notice = page.locator('#voice-notice', { hasText: 'The conversation has ended.' });
    await notice.getByRole('link', { name: 'Open the session' }).click();
    await page.locator('main').getByText('send_note').first().waitFor();
    const { sessions } = await api({ url: new URL(page.url()).origin }, null, 'GET', '/v1/sessions?limit=5');
    assert.equal(sessions[0].mode, 'voice');
  });
});
