// The voice page: shows what the client of the voice protocol reports, and passes on what the user does.

import { formatClock, formatJson, updateCountdowns } from './chat-parts.js';
import { element, visibleControls } from './dom.js';
import { VoiceClient } from './voice.js';

const page = document.getElementById('voice');
const thread = document.getElementById('voice-thread');
const status = document.getElementById('voice-status');
const notice = document.getElementById('voice-notice');
const startButton = document.getElementById('voice-start');
const stopButton = document.getElementById('voice-stop');
const muteButton = document.getElementById('voice-mute');
const interruptButton = document.getElementById('voice-interrupt');
const form = document.getElementById('voice-composer');
const input = form.querySelector('input');
const meters = { input: document.getElementById('level-input'), output: document.getElementById('level-output') };
const countdown = document.getElementById('voice-countdown');

const STATES = {
  idle: 'Not connected.',
  connecting: 'Connecting. Allow the microphone if the browser asks.',
  ready: 'Listening.',
  reconnecting: 'The connection was lost. Reconnecting.',
  ending: 'Saying goodbye.',
  blocked: 'Blocked for a while.',
};
const REASONS = {
  stopped: 'The conversation has ended.',
  tool: 'The agent has ended the conversation.',
  blocked: 'The conversation has ended: this client is blocked for a while.',
  idle: 'The conversation has ended: nobody said anything.',
  max_duration: 'The conversation has ended: it reached its longest duration.',
  provider: 'The conversation has ended: the voice model has ended it or cannot be reached.',
  elsewhere: 'The conversation was ended on another page.',
  shutdown: 'The conversation has ended: the server stops.',
};

const voice = new VoiceClient({ url: '/voice' });
const nodes = new Map();

/** The node with this name, at the end of the conversation when it is new. */
function place(name, make) {
  let node = nodes.get(name);
  if (!node) {
    node = make();
    nodes.set(name, node);
    thread.append(node);
    document.getElementById('voice-empty').hidden = true;
  }
  node.scrollIntoView({ block: 'nearest' });
  return node;
}

function showNotice(text, tone = '') {
  notice.className = `notice ${tone}`;
  notice.textContent = text ?? '';
  notice.hidden = !text;
}

function showState({ state, reason }) {
  page.dataset.state = state;
  status.textContent = state === 'idle' && reason ? REASONS[reason] ?? STATES.idle : STATES[state] ?? state;
  const isOpen = ['connecting', 'ready', 'reconnecting', 'ending'].includes(state);
  startButton.hidden = isOpen;
  startButton.disabled = state === 'blocked';
  stopButton.hidden = !isOpen;
  muteButton.disabled = state !== 'ready';
  input.disabled = state !== 'ready';
  form.querySelector('button').disabled = state !== 'ready';
  if (state !== 'blocked') countdown.hidden = true;
  if (state === 'idle') {
    interruptButton.hidden = true;
    for (const meter of Object.values(meters)) meter.value = 0;
  }
}

function showUtterance({ id, role, text, final, interrupted }) {
  const isUser = role === 'user';
  const node = place(`said ${id}`, () => element('div', { class: isUser ? 'msg user' : 'msg' },
    element('span', { class: 'unseen' }, isUser ? 'You:' : 'Agent:'), element('div', { class: 'utterance', dir: 'auto' })));
  node.querySelector('.utterance').textContent = interrupted ? `${text} …` : text;
  node.classList.toggle('partial', !final);
}

const TOOL_STATES = { running: ['run', 'running'], ok: ['', 'done'], failed: ['bad', 'failed'] };

function showTool({ callId, tool, status: state, error }) {
  const [dot, word] = TOOL_STATES[state];
  const href = `${page.dataset.calls}${encodeURIComponent(callId)}?session=${encodeURIComponent(voice.sessionId)}`;
  const node = place(`call ${callId}`, () => element('div', { class: 'call' }));
  node.replaceChildren(element('div', { class: 'summary' },
    element('span', { class: `dot ${dot}`, 'aria-hidden': 'true' }),
    element('b', { class: 'mono' }, visibleControls(tool)),
    element('span', { class: 'muted small' }, error ? `${word}: ${error}` : word), element('span', { class: 'grow' }),
    element('a', { class: 'small', href }, 'Open the call')));
}

const OUTCOMES = { approved: 'Approved', rejected: 'Rejected', expired: 'Expired' };
const BY = { voice: ', by voice', screen: ', on this page', elsewhere: ', on another page', nobody: '' };

function showQuestion({ id, tool, args, preview, expiresAt, outcome, by }) {
  const node = place(`question ${id}`, () =>
    element('div', { role: 'group', 'aria-label': `Confirmation of ${tool}` }));
  if (outcome) {
    node.className = 'small muted';
    node.replaceChildren(`${OUTCOMES[outcome] ?? outcome}${BY[by] ?? ''}: ${visibleControls(preview)}`);
    return;
  }
  const button = (label, kind, approved) => {
    const made = element('button', { type: 'button', class: `button ${kind}` }, label);
    made.addEventListener('click', () => voice.confirm(id, approved));
    return made;
  };
  node.className = 'ask';
  node.replaceChildren(
    element('div', {}, element('b', { dir: 'auto' }, visibleControls(preview)), ' ', element('span', { class: 'small' },
      'Asked by ', element('code', {}, visibleControls(tool)), ', expires in ',
      element('span', { class: 'num', 'data-expires': expiresAt }))),
    element('pre', { tabindex: '0' }, formatJson(args)),
    element('p', { class: 'small' }, 'Answer by voice after it was read out, or here:'),
    element('div', { class: 'actions' }, button('Approve', 'primary', true), button('Reject', 'danger', false)));
  updateCountdowns(node);
}

function showCountdown({ seconds, message }) {
  countdown.hidden = seconds <= 0;
  countdown.replaceChildren(element('b', { class: 'num' }, formatClock(seconds)),
    element('span', {}, message ? visibleControls(message) : 'until you may speak again.'));
}

const handlers = {
  state: showState,
  transcript: showUtterance,
  tool: showTool,
  confirmation: showQuestion,
  countdown: showCountdown,
  level(levels) {
    for (const [name, meter] of Object.entries(meters)) meter.value = levels[name];
  },
  speaking({ isSpeaking }) {
    interruptButton.hidden = !isSpeaking;
    if (voice.state === 'ready') status.textContent = isSpeaking ? 'Speaking. Talk to interrupt.' : STATES.ready;
  },
  message: ({ text }) => showNotice(text, 'info'),
  model: ({ isReconnecting }) => { if (isReconnecting) status.textContent = 'Changing the line to the model.'; },
  warning: ({ message }) => showNotice(message),
  error: ({ message }) => showNotice(message, 'bad'),
};
for (const [name, handle] of Object.entries(handlers)) voice.addEventListener(name, ({ detail }) => handle(detail));

startButton.addEventListener('click', async () => {
  showNotice(null);
  // What went wrong comes as an event.
  await voice.start().catch(() => {});
});
stopButton.addEventListener('click', () => voice.stop());
interruptButton.addEventListener('click', () => voice.interrupt());
muteButton.addEventListener('click', () => {
  voice.setMuted(!voice.isMuted);
  muteButton.setAttribute('aria-pressed', String(voice.isMuted));
});
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = input.value.trim();
  if (!text || voice.state !== 'ready') return;
  input.value = '';
  voice.say(text);
});
setInterval(() => updateCountdowns(thread), 1000);
showState({ state: 'idle' });
