// Every page with the keyboard alone: the focus is seen wherever it goes, and something is done.

import { test } from 'node:test';

import { api, assert, emptyServer, tabTo, withPage } from './support.mjs';

const main = (page) => page.getByRole('main');
const link = (page, name) => main(page).getByRole('link', { name }).first();
const button = (page, name) => main(page).getByRole('button', { name, exact: true }).first();

/** Goes to an element with Tab, and presses a key there. */
async function press(page, target, key) {
  await tabTo(page, target);
  await page.keyboard.press(key);
}

/** Goes to a field with Tab, writes, and sends. */
async function write(page, field, text) {
  await tabTo(page, field);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

/** An action of each page of the navigation, and how its effect is seen. */
const ACTIONS = {
  '/': async (page) => {
    await press(page, link(page, 'Open chat'), 'Enter');
    await page.waitForURL('**/chat');
  },
  '/chat': async (page) => {
    // The field has the focus when the page opens.
    await page.keyboard.type('Who founded the studio?');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'person:ines_halloran' }).first().waitFor();
  },
  '/talk': async (page) => {
    await write(page, main(page).getByRole('textbox', { name: 'Message' }), 'Who founded the studio?');
    await page.getByRole('link', { name: 'person:ines_halloran' }).first().waitFor();
  },
  '/tools': async (page) => {
    await write(page, main(page).getByLabel('Search tools by name or words'), 'calendar');
    await page.waitForURL(/q=calendar/);
    await press(page, link(page, 'calendar_create_event'), 'Enter');
    await page.waitForURL('**/tools/calendar_create_event');
  },
  '/prompt': async (page) => {
    await press(page, link(page, 'voice'), 'Enter');
    await page.waitForURL(/mode=voice/);
  },
  '/toolsets': async (page) => {
    await press(page, button(page, 'Compare'), 'Enter');
    await page.waitForURL(/from=/);
  },
  '/kb': async (page) => {
    await write(page, main(page).getByLabel('Search the knowledge base'), 'founder');
    await page.locator('.results li').first().waitFor();
  },
  '/calls': async (page) => {
    await write(page, main(page).getByLabel('Tool', { exact: true }), 'delete_item');
    await page.waitForURL(/tool=delete_item/);
    await press(page, link(page, 'delete_item'), 'Enter');
    await page.getByRole('heading', { name: 'Steps' }).waitFor();
  },
  '/confirmations': async (page) => {
    await press(page, button(page, 'Reject'), 'Enter');
    await page.locator('main', { hasText: 'rejected' }).waitFor();
  },
  '/sessions': async (page) => {
    await press(page, page.locator('main tbody a').first(), 'Enter');
    await press(page, button(page, 'End the session'), 'Enter');
    await page.getByText('ended').first().waitFor();
  },
  '/usage': async (page) => {
    await press(page, main(page).getByLabel('Time'), 'ArrowDown');
    await page.waitForURL(/span=6h/);
    await press(page, page.locator('main summary', { hasText: 'As a table' }).first(), 'Enter');
    await page.locator('main details[open] table').first().waitFor();
  },
  '/audit': async (page) => {
    await press(page, button(page, 'Verify'), 'Enter');
    await page.getByText('The audit is intact.').waitFor();
  },
};

test('every page is used with the keyboard alone, and the focus is always seen', async () => {
  const server = await emptyServer();
  const { sessionId } = await api(server, null, 'POST', '/v1/sessions', { mode: 'text' });
  await api(server, null, 'POST', '/v1/tools/delete_item/call', { args: { id: 41 }, sessionId });
  await withPage(server, {}, async (page) => {
    await page.goto('/');
    const links = page.getByRole('navigation', { name: 'Main' }).locator('a[href^="/"]');
    const listed = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    assert.deepEqual(listed.toSorted(), Object.keys(ACTIONS).toSorted(), 'each page has an action in this test');
    for (const path of listed) {
      await page.goto('/');
      await press(page, page.getByRole('navigation', { name: 'Main' }).locator(`a[href="${path}"]`), 'Enter');
      await page.waitForURL((url) => url.pathname === path);
      await page.waitForLoadState();
      await ACTIONS[path](page);
    }
  });
});

test('a tool is called from its form with the keyboard', async () => {
  await withPage(await emptyServer(), {}, async (page) => {
    await page.goto('/tools/write_note');
    await tabTo(page, page.getByLabel(/^note/));
    await page.keyboard.type('written with keys');
    await press(page, button(page, 'Call write_note'), 'Enter');
    await page.locator('section', { has: page.getByRole('heading', { name: 'Result' }) }).getByText('"ok": true').waitFor();
  });
});
