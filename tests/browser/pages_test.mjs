// Every page of the navigation, for both roles, on a phone.

import { test } from 'node:test';

import { api, assert, checkOnPhone, keyServer, withPage } from './support.mjs';

const HIDDEN_FROM_MEMBERS = ['/audit', '/toolsets', '/usage'];

/** The addresses of the navigation. */
async function pages(page) {
  await page.goto('/');
  const links = page.getByRole('navigation', { name: 'Main' }).locator('a[href^="/"]');
  return links.evaluateAll((all) => all.map((link) => link.getAttribute('href')));
}

for (const role of ['admin', 'member']) {
  test(`every page of the navigation fits a phone, with nothing for axe to find, as ${role}`, async () => {
    const server = await keyServer();
    const { sessionId } = await api(server, server.keys[role], 'POST', '/v1/sessions', { mode: 'text' });
    const envelope = await api(server, server.keys[role], 'POST', '/v1/tools/validate_email/call',
      { sessionId, args: { email: 'ines@lanternfield.example' } });
    await withPage(server, { signedInAs: role }, async (page) => {
      const listed = await pages(page);
      assert.deepEqual(HIDDEN_FROM_MEMBERS.filter((path) => listed.includes(path)), role === 'admin' ? HIDDEN_FROM_MEMBERS : []);
      const single = ['/tools/validate_email', '/tools/nested_form?tab=parameters', '/tools/kb_search?tab=models',
        '/tools/kb_search?tab=documentation', `/sessions/${sessionId}`, '/kb/person%3Aines_halloran',
        `/calls/${envelope.meta.executionId}?session=${sessionId}`];
      for (const path of [...listed, ...single]) {
        const response = await page.goto(path);
        assert.equal(response.status(), 200, path);
        await checkOnPhone(page, `${path} as ${role}`);
      }
    });
  });
}
