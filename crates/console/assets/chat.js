// The chat page: sends messages to /api/chat, shows the answer as it comes, and finds it again after a reload.

import { applyChunk, isOpenApproval, isOpenTask, readChunks, textOf } from './chat-message.js';
import { partNode, updateCountdowns } from './chat-parts.js';
import { clientId, element, sendJson } from './dom.js';

/** Waiting times before a lost stream is asked for again, in milliseconds. */
const RETRY_DELAYS = [500, 1000, 2000, 4000, 8000];
/** Someone else may answer an approval, on another page. */
const APPROVAL_POLL_MS = 4000;
/** The most that is read out when an answer is complete. */
const MAX_SPOKEN_CHARS = 2000;

const page = document.getElementById('chat');
const thread = document.getElementById('thread');
const form = document.getElementById('composer');
const input = form.querySelector('textarea');
const sendButton = form.querySelector('button[type=submit]');
const stopButton = document.getElementById('stop');
const status = document.getElementById('chat-status');
const notice = document.getElementById('chat-notice');
const empty = document.getElementById('chat-empty');

/** `id` names the conversation: chosen here until the server has told the id of its session. */
const chat = {
  id: page.dataset.session || `console-${crypto.randomUUID()}`,
  messages: [],
  nodes: new Map(),
  isBusy: false,
  /** The message that an answer to an approval continues. */
  continues: null,
  /** The results of background calls are being read. */
  isFollowingTasks: false,
};

const url = (path) => `/api/chat/${encodeURIComponent(chat.id)}${path}`;

/** An error of the server as a sentence. */
async function sentence(response) {
  const text = (await response.text().catch(() => '')).trim();
  if (response.status === 401) return 'You are not signed in any more. Sign in again.';
  return text && text.length < 1000 ? text : `The server answered with status ${response.status}.`;
}

function say(text) {
  status.textContent = text;
}

function showNotice(text, action) {
  notice.hidden = !text;
  notice.replaceChildren(element('div', {}, text ?? ''));
  if (!text || !action) return;
  const button = element('button', { type: 'button', class: 'button' }, action.label);
  button.addEventListener('click', action.run);
  notice.append(button);
}

function setBusy(isBusy) {
  chat.isBusy = isBusy;
  page.setAttribute('aria-busy', String(isBusy));
  stopButton.hidden = !isBusy;
  sendButton.disabled = isBusy;
  render();
}

const context = {
  callUrl: (id) => `${page.dataset.calls}${encodeURIComponent(id)}?session=${encodeURIComponent(chat.id)}`,
  recordUrl: (id) => `${page.dataset.records}${encodeURIComponent(id)}`,
  get canAnswer() {
    return !chat.isBusy;
  },
  answer,
};

function render() {
  const isAtEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
  empty.hidden = chat.messages.length > 0;
  for (const message of chat.messages) renderMessage(message);
  for (const [id, known] of chat.nodes) {
    if (!chat.messages.some((message) => message.id === id)) {
      known.node.remove();
      chat.nodes.delete(id);
    }
  }
  if (isAtEnd && chat.messages.length > 0) window.scrollTo(0, document.documentElement.scrollHeight);
}

/** The nodes of parts are kept: a reader may have opened a card or selected text. */
function renderMessage(message) {
  let known = chat.nodes.get(message.id);
  if (!known) {
    const isUser = message.role === 'user';
    known = { node: element('div', { class: isUser ? 'msg user' : 'msg', 'data-role': message.role }), parts: [] };
    known.node.append(element('span', { class: 'unseen' }, isUser ? 'You:' : 'Agent:'));
    chat.nodes.set(message.id, known);
    thread.append(known.node);
  }
  if (message.role === 'user') {
    if (known.parts.length === 0) known.parts = message.parts.map((part) => userPart(known.node, part));
    return;
  }
  for (const extra of known.parts.splice(message.parts.length)) extra?.remove();
  message.parts.forEach((part, index) => {
    const before = known.parts[index];
    const reused = before?.partType === part.type ? before : null;
    const node = partNode(part, context, reused);
    if (node !== before) {
      if (before && node) before.replaceWith(node);
      else if (before) before.remove();
      else if (node) insertPart(known, index, node);
    }
    if (node) node.partType = part.type;
    known.parts[index] = node;
  });
}

function insertPart(known, index, node) {
  const next = known.parts.slice(index + 1).find(Boolean);
  if (next) next.before(node);
  else known.node.append(node);
}

function userPart(node, part) {
  const shown = part.type === 'text' ? element('div', { class: 'utterance', dir: 'auto' }, part.text)
    : element('span', { class: 'muted small' }, `A file of type ${part.mediaType}`);
  node.append(shown);
  return shown;
}

let frame = 0;
function renderSoon() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    render();
  });
}

/** The conversation has an address once the server knows it. */
function adopt(response) {
  const session = response.headers.get('x-toolwright-session');
  if (!session || session === page.dataset.session) return;
  chat.id = session;
  page.dataset.session = session;
  history.replaceState(null, '', `${page.dataset.chats}${encodeURIComponent(session)}`);
  addToList(session);
}

/** A new conversation appears in the list. */
function addToList(session) {
  const list = document.getElementById('conversations');
  if (!list) return;
  const title = textOf(chat.messages[0] ?? { parts: [] }).slice(0, 80);
  const link = element('a', { href: location.pathname, 'aria-current': 'page', 'data-session': session },
    element('span', { dir: 'auto' }, title || 'New conversation'));
  list.querySelectorAll('[aria-current]').forEach((other) => other.removeAttribute('aria-current'));
  list.prepend(element('li', {}, link));
  document.getElementById('no-conversations')?.remove();
}

/** Reads a stream into its message. Returns what has ended it. */
async function follow(response) {
  adopt(response);
  let message = null;
  let end = null;
  for await (const chunk of readChunks(response)) {
    if (chunk.type === 'start') message = begin(chunk.messageId);
    else if (message) end = applyChunk(message, chunk) ?? end;
    renderSoon();
  }
  return end ?? {};
}

/** A stream after an approval continues its message; a replay writes it anew. */
function begin(id) {
  const known = chat.messages.find((message) => message.id === id);
  if (known && chat.continues === id) return known;
  const message = { id, role: 'assistant', parts: [] };
  if (known) chat.messages[chat.messages.indexOf(known)] = message;
  else chat.messages.push(message);
  return message;
}

/** Runs one turn, or the rest of it, to its end. `request` is sent again when the user asks for it. */
async function run(request, { onRefused } = {}) {
  showNotice(null);
  setBusy(true);
  say('The agent is answering.');
  try {
    const response = await request();
    if (!response.ok) {
      const text = await sentence(response);
      if (onRefused) return onRefused(text);
      showNotice(text, { label: 'Try again', run: () => run(request) });
      return null;
    }
    if (response.status !== 204) finish(await follow(response), request);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    await recover(request);
  } finally {
    chat.continues = null;
    setBusy(false);
    followTasks();
  }
  return null;
}

function finish(end, request) {
  const last = chat.messages.at(-1);
  for (const part of last?.parts ?? []) if (part.state === 'streaming') part.state = 'done';
  if (end.error) {
    showNotice(end.error, { label: 'Try again', run: () => run(request) });
    say('The answer failed.');
  } else if (end.aborted) {
    say('Stopped.');
    showNotice('The answer was stopped. What was said stays in the conversation.');
  } else if (last?.parts.some(isOpenApproval)) {
    say('A call waits for your approval.');
  } else {
    say(textOf(last ?? { parts: [] }).replace(/[*`#>|]/g, '').slice(0, MAX_SPOKEN_CHARS));
  }
}

/** Results of background calls come after their turn, and replace the part of their call. */
async function followTasks() {
  const openTasks = () => chat.messages.flatMap((message) => message.parts.filter(isOpenTask)).length;
  if (chat.isFollowingTasks || openTasks() === 0) return;
  chat.isFollowingTasks = true;
  for (let attempt = 0; openTasks() > 0 && attempt < RETRY_DELAYS.length; attempt += 1) {
    try {
      const response = await fetch(url('/stream?follow=tasks'));
      if (response.status !== 200) break;
      for await (const chunk of readChunks(response)) {
        const message = chat.messages.find(({ parts }) => parts.some((part) => part.toolCallId === chunk.toolCallId));
        if (message) applyChunk(message, chunk);
        attempt = 0;
        renderSoon();
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    if (openTasks() > 0) await new Promise((resolve) => { setTimeout(resolve, RETRY_DELAYS[attempt]); });
  }
  chat.isFollowingTasks = false;
}

/** The connection is lost; the turn goes on at the server. */
async function recover(request) {
  for (const delay of RETRY_DELAYS) {
    say('The connection was lost. Reconnecting.');
    await new Promise((resolve) => { setTimeout(resolve, delay); });
    try {
      chat.continues = null;
      const response = await fetch(url('/stream'));
      if (response.status === 200) return finish(await follow(response), request);
      if (response.status === 204) {
        await loadMessages();
        return say('The connection is back.');
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return showNotice('The server cannot be reached.', { label: 'Try again', run: () => run(request) });
}

async function loadMessages() {
  const response = await fetch(url('/messages'));
  if (!response.ok) throw new Error(await sentence(response));
  const { messages } = await response.json();
  chat.messages = messages;
  render();
}

function send(text) {
  const message = { id: `user-${crypto.randomUUID()}`, role: 'user', parts: [{ type: 'text', text }] };
  chat.messages.push(message);
  return run(() => sendJson('/api/chat', { id: chat.id, clientId: clientId(), messages: [message],
    trigger: 'submit-message' }));
}

/** Answers an approval. Returns why the server has refused edited arguments. */
async function answer(part, { approved, args, keepOnError }) {
  const message = chat.messages.find((other) => other.parts.includes(part));
  const answered = { ...part, state: 'approval-responded', approval: { id: part.approval.id, approved } };
  if (args !== undefined) answered.approval.args = args;
  const body = { id: chat.id, clientId: clientId(), trigger: 'submit-message', messageId: message.id,
    messages: [{ id: message.id, role: 'assistant', parts: [answered] }] };
  chat.continues = message.id;
  const refused = (text) => {
    if (keepOnError) return text;
    showNotice(text, { label: 'Load the conversation again', run: () => location.reload() });
    return null;
  };
  return run(() => sendJson('/api/chat', body), { onRefused: refused });
}

async function resume() {
  if (!page.dataset.session) return;
  try {
    await loadMessages();
    const response = await fetch(url('/stream'));
    if (response.status === 200) await run(async () => response);
    else followTasks();
  } catch (error) {
    showNotice(error instanceof TypeError ? 'The server cannot be reached.' : error.message,
      { label: 'Try again', run: () => location.reload() });
  }
}

/** An approval that was answered elsewhere continues its turn there. */
async function pollApprovals() {
  if (chat.isBusy || document.hidden || !chat.messages.at(-1)?.parts.some(isOpenApproval)) return;
  const response = await fetch(url('/messages')).catch(() => null);
  if (!response?.ok || chat.isBusy) return;
  const { messages } = await response.json();
  if (!chat.isBusy && !messages.at(-1)?.parts.some(isOpenApproval)) await resume();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = input.value.trim();
  if (!text || chat.isBusy) return;
  input.value = '';
  fitInput();
  send(text);
});

input.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

/** The field is as high as its text, up to ten lines. */
function fitInput() {
  input.rows = Math.min(10, Math.max(1, input.value.split('\n').length));
}

input.addEventListener('input', fitInput);
stopButton.addEventListener('click', async () => {
  say('Stopping.');
  const response = await sendJson(url('/stop'), {}).catch(() => null);
  if (!response?.ok) showNotice('The answer could not be stopped: the server cannot be reached.');
});
page.querySelectorAll('[data-suggestion]').forEach((button) => button.addEventListener('click', () => {
  input.value = button.dataset.suggestion;
  fitInput();
  input.focus();
}));
setInterval(() => updateCountdowns(thread), 1000);
setInterval(pollApprovals, APPROVAL_POLL_MS);
resume();
