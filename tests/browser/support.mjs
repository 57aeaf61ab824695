// What all browser tests share: the servers, the browser, pages that fail on any error, axe, screenshots.
//
// scripts/browser-tests sets TOOLWRIGHT (the program), VOICE_PYTHON (for stand-ins of voice models), SCREENSHOTS and WORK
// (directories).

import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { writeRecording } from './recording.mjs';

const require = createRequire(path.join(process.env.WORK, 'package.json'));
const { chromium } = require('playwright-core');
const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const work = process.env.WORK;
const screenshots = process.env.SCREENSHOTS;
export const program = process.env.TOOLWRIGHT;

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

// ---- processes -------------------------------------------------------------------------------------------------------

const processes = [];

/** Starts a program and waits for the line that `pattern` matches; returns the process and the match. */
function start(command, args, { pattern, ...options }) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  processes.push(child);
  return new Promise((resolve, reject) => {
    let output = '';
    const read = (data) => {
      output += data;
      const match = pattern.exec(output);
      if (match) resolve({ child, match });
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => reject(new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`)));
  });
}

export function stopAll() {
  for (const child of processes) if (child.exitCode === null) child.kill();
}

/** The program's output without colours and messages. */
export function toolwright(project, ...args) {
  return execFileSync(program, args, { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

/** A project with the reference tools, the tools of the tests, and a knowledge base. */
function makeProject(name, settings, modelPort) {
  const project = path.join(work, name);
  fs.rmSync(project, { recursive: true, force: true });
  fs.mkdirSync(project, { recursive: true });
  const copy = (from, to) => fs.cpSync(path.join(root, from), path.join(project, to), { recursive: true });
  copy('tools', 'tools');
  fs.rmSync(path.join(project, 'tools/tool_registry.json'), { force: true });
  copy('prompts', 'prompts');
  copy('demo/kb', 'kb');
  copy('tests/browser/tools', 'tools');
  copy('tests/chat-clients/tools', 'tools');
  // Documentation of a megabyte. A build refuses characters that turn its direction.
  fs.appendFileSync(path.join(project, 'tools/hostile-text/doc.md'), '\n<script>window.hacked = 1</script>'.repeat(30_000));
  for (const tool of ['get-weather', 'delete-item', 'flaky']) {
    const handler = path.join(project, 'tools', tool, 'handler.js');
    fs.writeFileSync(handler, fs.readFileSync(handler, 'utf8').replaceAll('{{PORT}}', modelPort));
  }
  const hosts = ['get_weather', 'delete_item'].map((tool) => `[tool.${tool}.http]\nallow = ["127.0.0.1:${modelPort}"]\n`);
  fs.writeFileSync(path.join(project, 'toolwright.toml'), `[kb]\nsources = ["kb"]\n${hosts.join('')}${settings}`);
  return project;
}

async function serve(project, ...args) {
  const env = { ...process.env, NO_COLOR: '1', TOOLWRIGHT_LOG: 'warn', VOICE_KEY: 'k' };
  for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY']) delete env[name];
  const { child, match } = await start(program, ['serve', '--listen', '127.0.0.1:0', '--access-log', 'false', ...args],
    { cwd: project, env, pattern: /http:\/\/(127\.0\.0\.1:\d+)[^]*(?:the agent answers|the offline agent)/ });
  return { project, url: `http://${match[1]}`, child };
}

/** Servers, each started when a test first needs it. */
const started = {};
const once = (name, make) => () => { started[name] ??= make(); return started[name]; };

const model = once('model', async () => {
  const script = path.join(root, 'tests/chat-clients/scripted_model.py');
  return (await start('python3', [script], { pattern: /^(\d+)$/m })).match[1];
});

/** With keys for an admin and for a member, and the scripted model. */
export const keyServer = once('keys', async () => {
  const port = await model();
  const agent = `[agent]\nprovider = "openai-chat"\nmodel = "demo-model"\nbase_url = "http://127.0.0.1:${port}/v1"\n`;
  const project = makeProject('keys', agent, port);
  const key = (name, ...roles) => toolwright(project, 'keys', 'create', name, ...roles.flatMap((role) => ['--role', role]));
  const keys = { admin: key('ada', 'admin'), member: key('mira', 'staff') };
  return { ...(await serve(project)), keys };
});

/** Without keys and without a model: what a new user sees. */
export const openServer = once('open', async () => serve(makeProject('open', '[agent]\nprovider = "offline"\n', await model())));

/** With a voice model that hears these utterances, one each time that the microphone is heard. */
export async function voiceServer(name, ...utterances) {
  const script = path.join(root, 'tests/voice/gemini_live_standin.py');
  const heard = utterances.flatMap((utterance) => ['--asr', utterance]);
  const standin = await start(process.env.VOICE_PYTHON, [script, '--port', '0', ...heard], { pattern: /^ready (\d+)/m });
  const voice = `[voice]\nprovider = "gemini-live"\nmodel = "gemini-2.5-live"\nurl = "ws://127.0.0.1:${standin.match[1]}"\n`;
  const tools = '[tools]\ndeclared = ["voice-tools.json"]\n';
  const project = makeProject(name, `[agent]\nprovider = "offline"\n${tools}${voice}key_env = "VOICE_KEY"\n`, await model());
  fs.copyFileSync(path.join(root, 'tests/voice/tools.json'), path.join(project, 'voice-tools.json'));
  return serve(project);
}

/** Watches its tools. Its calendar cannot be reached, which its setup has to say. */
export const watchingServer = once('watching', async () =>
  serve(makeProject('watching', '[agent]\nprovider = "offline"\n[calendar]\norganizer = "studio@example.org"\nurl = "http://127.0.0.1:9/"\n', await model()),
    '--watch'));

/** Its store is edited behind its back. */
export const brokenServer = once('broken', async () =>
  serve(makeProject('broken', '[agent]\nprovider = "offline"\n', await model())));

/** Has nothing in its store but what its only test makes. */
export const emptyServer = once('empty', async () =>
  serve(makeProject('empty', '[agent]\nprovider = "offline"\n', await model())));

/** The path of a file of a tool. */
export const toolFile = (server, file) => path.join(server.project, 'tools', file);

// ---- pages -----------------------------------------------------------------------------------------------------------

/** What the microphone hears, again and again: an utterance, a pause of 3 s, an utterance, a pause of 5 s. */
const recording = path.join(work, 'microphone.wav');
writeRecording(recording, [['speech', 700], ['silence', 3000], ['speech', 700], ['silence', 5000]]);

const browser = once('browser', () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--use-fake-ui-for-media-stream',
    '--use-fake-device-for-media-stream', `--use-file-for-fake-audio-capture=${recording}`,
    '--autoplay-policy=no-user-gesture-required'],
}));

export async function closeBrowser() {
  if (started.browser) await (await started.browser).close();
}

/**
 * Opens a page in a context of its own and runs `body` with it. Afterwards nothing may have gone wrong: no error in the
 * console, no exception, no violation of the content security policy, no request to another host, no script of a
 * hostile text. `allowed` are patterns of errors that the test provokes.
 */
export async function withPage(server, { signedInAs, allowed = [], viewport = DESKTOP } = {}, body) {
  const context = await (await browser()).newContext({ viewport, baseURL: server.url, locale: 'en-GB' });
  const problems = [];
  const report = (problem) => {
    if (!allowed.some((pattern) => pattern.test(problem))) problems.push(problem);
  };
  await context.exposeBinding('reportViolation', (_, text) => report(`content security policy: ${text}`));
  await context.addInitScript(() => document.addEventListener('securitypolicyviolation', (event) =>
    window.reportViolation(`${event.violatedDirective} blocked ${event.blockedURI || 'inline'} at ${document.URL}`)));
  const page = await context.newPage();
  page.on('console', (message) => message.type() === 'error' && report(`console: ${message.text()} (${message.location().url})`));
  page.on('pageerror', (error) => report(`exception: ${error.stack ?? error}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== server.url) report(`request to ${url.href}`);
  });
  page.setDefaultTimeout(60_000);
  try {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    if (signedInAs) await signIn(page, server.keys[signedInAs]);
    await body(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined, 'a hostile text ran as a script');
  } catch (error) {
    await page.screenshot({ path: path.join(screenshots, 'failed.png') }).catch(() => {});
    if (problems.length > 0) error.message += `\nand before it: ${problems.join('\n')}`;
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(problems, []);
}

export async function signIn(page, key) {
  await page.goto('/sign-in');
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL((url) => url.pathname !== '/sign-in');
}

/** axe finds nothing serious, nothing scrolls sideways, and screenshots are taken: light and dark, wide and narrow. */
export async function checkLook(page, name) {
  for (const [device, viewport] of [['desktop', DESKTOP], ['phone', PHONE]]) {
    await page.setViewportSize(viewport);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} pixels too wide for a ${device}`);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      // The window is made as high as the page, so that what sticks to its edges is where it belongs.
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      await page.setViewportSize({ ...viewport, height: Math.min(Math.max(height, viewport.height), 4000) });
      await page.evaluate(() => window.scrollTo(0, 0));
      const file = path.join(screenshots, `${name}-${device}-${colorScheme}.png`);
      await page.screenshot({ path: file, animations: 'disabled' });
      await page.setViewportSize(viewport);
      await checkAccessibility(page, `${name} (${device}, ${colorScheme})`);
    }
  }
  await page.setViewportSize(DESKTOP);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Presses Tab until this element has the focus, which must be seen on each element on the way. */
export async function tabTo(page, target) {
  const wanted = await target.elementHandle();
  for (let presses = 0; presses < 150; presses += 1) {
    await page.keyboard.press('Tab');
    if (await hasVisibleFocus(page, wanted)) return;
  }
  throw new Error(`${target} is not reached with Tab`);
}

/** Whether the focus is on `wanted`. It must be seen wherever it is: by a line around, or by another colour. */
async function hasVisibleFocus(page, wanted) {
  const focus = await page.evaluate((element) => {
    const active = document.activeElement;
    if (active === document.body) return { isThere: false, isSeen: true };
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(active);
    const box = active.getBoundingClientRect();
    const isSeen = box.width > 0 && box.height > 0
      && ((outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none');
    return { isThere: active === element, isSeen, html: active.outerHTML.slice(0, 200) };
  }, wanted);
  assert.ok(focus.isSeen, `the focus is not seen on ${page.url()}: ${focus.html}`);
  return focus.isThere;
}

/** On a phone nothing scrolls sideways, and axe finds nothing serious. */
export async function checkOnPhone(page, name) {
  await page.setViewportSize(PHONE);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} pixels too wide for a phone`);
  await checkAccessibility(page, name);
}

async function checkAccessibility(page, name) {
  await page.evaluate(`window.axe || (() => { ${axeSource} })()`);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const serious = found.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  const lines = serious.map(({ id, help, nodes }) =>
    `${id}: ${help}\n  ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join('\n  ')}`);
  assert.equal(lines.join('\n'), '', `axe on ${name}`);
}

/** A request to the API with a key. */
export async function api(server, key, method, url, body) {
  const headers = { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(server.url + url, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${url}: ${response.status} ${text}`);
  return text && JSON.parse(text);
}

export { assert };
