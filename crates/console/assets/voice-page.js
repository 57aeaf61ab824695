// The voice page: a conversation of voice.js as text, with its calls, questions, levels and countdown.

import { factsNode, formatClock, updateCountdowns } from './chat-parts.js';
import { clientId, element, visibleControls } from './dom.js';
import { VoiceClient } from './voice.js';

/** Speech has a level of about a tenth; the meters show its root, so that quiet speech is seen. */
const shownLevel = (level) => Math.min(1, Math.sqrt(level));
const REASONS = {
  stopped: 'The conversation has ended.',
  tool: 'The agent has ended the conversation.',
  idle: 'The conversation has ended, because nothing was said for a while.',
  max_duration: 'The conversation has ended: it was as long as this server allows.',
  provider: 'The voice model has ended the conversation, or cannot be reached.',
  elsewhere: 'The session was ended elsewhere.',
};
const STATES = {
  idle: 'Not connected',
  connecting: 'Connecting',
  ready: 'Listening',
  reconnecting: 'Reconnecting',
  ending: 'Ending',
  blocked: 'Blocked',
};
const BY = { voice: 'by voice', screen: 'here', elsewhere: 'elsewhere', nobody: 'in time' };

const byId = (id) => document.getElementById(id);
const page = byId('voice');
const thread = byId('thread');
const notice = byId('voice-notice');
const composer = byId('composer');
const input = composer.querySelector('input');
const buttons = { start: byId('start'), end: byId('end'), mute: byId('mute'), interrupt: byId('interrupt') };

/** The nodes of utterances, calls and questions. One conversation after the other is added to the page. */
let nodes = new Map();
let session = null;
const voice = new VoiceClient({ clientId: clientId() });

const say = (text) => { byId('voice-status').textContent = text; };

function showNotice(kind, ...content) {
  notice.hidden = content.length === 0;
  notice.className = `notice ${kind}`;
  notice.replaceChildren(element('div', {}, content));
}

/** Puts a node at the end, or in place of the one of this key. */
function put(key, node) {
  const isAtEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 120;
  const known = nodes.get(key);
  if (known) known.replaceWith(node);
  else thread.append(node);
  nodes.set(key, node);
  byId('voice-empty').hidden = true;
  if (isAtEnd) window.scrollTo(0, document.documentElement.scrollHeight);
}

let isSpeaking = false;

function showStateText(state) {
  const ready = isSpeaking ? 'Speaking' : voice.isMuted ? 'Microphone off' : STATES.ready;
  byId('voice-state').textContent = state === 'ready' ? ready : STATES[state];
}

function showState(state) {
  page.dataset.state = state;
  const isOpen = state === 'ready' || state === 'reconnecting';
  const isIdle = state === 'idle';
  showStateText(state);
  byId('voice-dot').className = `dot ${{ ready: '', blocked: 'bad', idle: 'idle' }[state] ?? 'run'}`;
  buttons.start.hidden = !(isIdle || state === 'blocked');
  buttons.start.disabled = !isIdle;
  buttons.end.hidden = isIdle || state === 'blocked';
  for (const part of [buttons.mute, buttons.interrupt, composer]) part.hidden = !isOpen;
  byId('countdown').hidden = state !== 'blocked';
  if (state === 'blocked') notice.hidden = true;
  if (isIdle) for (const name of ['input', 'output']) byId(`level-${name}`).value = 0;
}

function showUtterance({ id, role, text, final, interrupted }) {
  const isUser = role === 'user';
  const classes = `msg${isUser ? ' user' : ''}${final ? '' : ' partial'}`;
  put(`said ${id}`, element('div', { class: classes, 'data-role': role },
    element('span', { class: 'unseen' }, isUser ? 'You:' : 'Agent:'),
    element('div', { class: 'utterance', dir: 'auto' }, visibleControls(text)),
    interrupted ? element('span', { class: 'chip' }, 'interrupted') : null));
  if (final && !isUser) say(text);
}

function showTool({ callId, tool, status, error }) {
  const dot = { running: 'run', ok: '', failed: error === 'CONFIRMATION_REQUIRED' ? 'warn' : 'bad' }[status];
  const words = { running: 'running', ok: 'done', failed: `failed: ${error}` };
  const word = error === 'CONFIRMATION_REQUIRED' ? 'asks first' : words[status];
  const address = `${page.dataset.calls}${encodeURIComponent(callId)}?session=${encodeURIComponent(session)}`;
  put(`call ${callId}`, element('div', { class: 'call', 'data-status': status }, element('div', { class: 'summary' },
    element('span', { class: `dot ${dot}`, 'aria-hidden': 'true' }),
    element('b', { class: 'mono' }, visibleControls(tool)), element('span', { class: 'muted small' }, word),
    element('span', { class: 'grow' }),
    status === 'running' ? null : element('a', { class: 'small', href: address }, 'Open the call'))));
}

function showQuestion({ id, tool, args, preview, expiresAt, outcome, by }) {
  if (outcome) {
    const isApproved = outcome === 'approved';
    const text = outcome === 'expired' ? 'Not answered in time' : `${isApproved ? 'Approved' : 'Rejected'} ${BY[by] ?? ''}`;
    put(`question ${id}`, element('p', { class: 'answered' }, element('span', { class: `chip ${isApproved ? 'ok' : 'warn'}` }, text),
      ' ', element('span', { class: 'muted small', dir: 'auto' }, visibleControls(preview))));
    return say(text);
  }
  const button = (label, kind, approved) => {
    const node = element('button', { type: 'button', class: `button ${kind}` }, label);
    node.addEventListener('click', () => voice.confirm(id, approved));
    return node;
  };
  const node = element('div', { class: 'ask', role: 'group', 'aria-label': `Confirmation of ${tool}` },
    element('div', {}, element('b', { dir: 'auto' }, visibleControls(preview)), ' ',
      element('span', { class: 'small' }, 'Asked by ', element('code', {}, visibleControls(tool)), ', expires in ',
        element('span', { class: 'num', 'data-expires': expiresAt }))),
    element('div', { class: 'panel' }, element('div', { class: 'body' }, factsNode(args))),
    element('p', { class: 'small' }, 'Say yes or no once it has been read to you, or use a button.'),
    element('div', { class: 'actions' }, button('Approve', 'primary', true), button('Reject', 'danger', false)));
  put(`question ${id}`, node);
  updateCountdowns(node);
  return say(`A call waits for your approval: ${preview}`);
}

/** How a conversation has ended, with a link to all of it. */
function showEnd(reason) {
  nodes = new Map();
  const text = REASONS[reason];
  if (!text) return;
  const address = session && `${page.dataset.sessions}${encodeURIComponent(session)}`;
  showNotice('info', text, ' ', address ? element('a', { href: address }, 'Open the session') : null);
  say(text);
}

voice.addEventListener('state', ({ detail: { state, reason } }) => {
  session = voice.sessionId ?? session;
  if (state === 'idle') isSpeaking = false;
  showState(state);
  if (state === 'ready') {
    notice.hidden = true;
    say('Connected. You can talk.');
  }
  if (state === 'idle' && reason) showEnd(reason);
});
voice.addEventListener('transcript', ({ detail }) => showUtterance(detail));
voice.addEventListener('tool', ({ detail }) => showTool(detail));
voice.addEventListener('confirmation', ({ detail }) => showQuestion(detail));
voice.addEventListener('level', ({ detail }) => {
  byId('level-input').value = voice.isMuted ? 0 : shownLevel(detail.input);
  byId('level-output').value = shownLevel(detail.output);
});
voice.addEventListener('speaking', ({ detail }) => {
  ({ isSpeaking } = detail);
  buttons.interrupt.disabled = !isSpeaking;
  showStateText(voice.state);
});
voice.addEventListener('model', ({ detail: { isReconnecting } }) => {
  if (isReconnecting) showNotice('info', 'The connection to the voice model is being replaced. The conversation goes on.');
  else notice.hidden = true;
});
voice.addEventListener('message', ({ detail: { text } }) => {
  if (text) put(`message ${nodes.size}`, element('p', { class: 'notice info', dir: 'auto' }, visibleControls(text)));
});
voice.addEventListener('suppressed', ({ detail: { audio, transcript } }) => {
  const what = [audio && 'sound', transcript && 'transcript'].filter(Boolean).join(' and ');
  if (voice.state === 'blocked') return;
  if (what) showNotice('info', `A tool has turned the ${what} off.`);
  else notice.hidden = true;
});
voice.addEventListener('countdown', ({ detail: { seconds, message } }) => {
  byId('countdown-text').textContent = message ?? 'This client is blocked.';
  byId('countdown-left').textContent = formatClock(seconds);
});
voice.addEventListener('warning', ({ detail }) => showNotice('', detail.message));
voice.addEventListener('error', ({ detail: { code, message } }) => {
  const isMicrophone = code.startsWith('microphone') || code === 'unsupported';
  showNotice('bad', message, ' ', isMicrophone ? element('a', { href: '/chat' }, 'Write instead') : null);
});

buttons.start.addEventListener('click', async () => {
  notice.hidden = true;
  // What fails is reported by the event.
  await voice.start().then(() => input.focus({ preventScroll: true }), () => {});
});
buttons.end.addEventListener('click', () => voice.stop());
buttons.interrupt.addEventListener('click', () => voice.interrupt());
buttons.mute.addEventListener('click', () => {
  voice.setMuted(!voice.isMuted);
  buttons.mute.setAttribute('aria-pressed', String(voice.isMuted));
  showState(voice.state);
});
composer.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = input.value.trim();
  if (!text) return;
  voice.say(text);
  input.value = '';
});
setInterval(() => updateCountdowns(thread), 1000);
