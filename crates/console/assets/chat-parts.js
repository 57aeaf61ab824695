// The parts of an assistant message as DOM nodes: text, reasoning, calls of tools, approvals.

import { isOpenTask, toolName } from './chat-message.js';
import { element, visibleControls } from './dom.js';
import { renderMarkdown } from './markdown.js';

/** More of a value is on the page of its call. */
const MAX_SHOWN_CHARS = 8_000;
const MAX_FACT_CHARS = 2_000;

export function formatDuration(ms) {
  if (ms == null) return '';
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Seconds as minutes and seconds. */
export function formatClock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** JSON to be read, with characters that reorder text made visible. */
export function formatJson(value, limit = MAX_SHOWN_CHARS) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
  const shown = visibleControls(text.slice(0, limit));
  return text.length > limit ? `${shown}\n… ${(text.length - limit).toLocaleString('en')} more characters` : shown;
}

/**
 * The node of a part; `known` is the one that it has had so far. `context` has the addresses of pages, and what an
 * answer does: `{ callUrl, recordUrl, canAnswer, answer(part, { approved, args, keepOnError }) }`.
 */
export function partNode(part, context, known) {
  if (part.type === 'text') return textNode(part, context, known);
  if (part.type === 'reasoning') return reasoningNode(part, known);
  if (part.type === 'step-start') return null;
  if (part.type.startsWith('tool-')) return toolNode(part, context, known);
  return null;
}

function textNode(part, context, known) {
  const node = known ?? element('div', { class: 'prose' });
  renderMarkdown(node, part.text, (id) => citationNode(id, context));
  return node;
}

/** An id of the knowledge base, `type:slug`, that opens its record. */
function citationNode(id, { recordUrl }) {
  return recordUrl ? element('a', { class: 'cite', href: recordUrl(id) }, visibleControls(id)) : null;
}

function reasoningNode(part, known) {
  const node = known ?? element('details', { class: 'call reasoning' },
    element('summary', {}, element('span', { class: 'muted small' })), element('div', { class: 'body prose small' }));
  node.querySelector('summary span').textContent = part.state === 'streaming' ? 'Thinking…' : 'Reasoning';
  renderMarkdown(node.querySelector('.body'), part.text);
  return node;
}

/** A call that waits for approval is the question; any other is a card. It is built anew when its state changes. */
function toolNode(part, context, known) {
  const state = isOpenTask(part) ? 'task' : part.state;
  if (known?.dataset.state === state) {
    known.querySelectorAll('.ask button').forEach((button) => { button.disabled = !context.canAnswer; });
    updateCountdowns(known);
    return known;
  }
  const isOpen = known?.querySelector('details')?.open ?? false;
  const node = element('div', { class: 'part', 'data-state': state });
  node.append(state === 'approval-requested' ? approvalNode(part, context) : cardNode(part, context, isOpen));
  return node;
}

const STATES = {
  'input-available': ['run', 'running'],
  'approval-responded': ['run', 'approved, running'],
  task: ['run', 'runs in the background'],
  'output-available': ['', ''],
  'output-error': ['bad', 'failed'],
  'output-denied': ['warn', 'rejected'],
};

function cardNode(part, { callUrl }, isOpen) {
  const [dot, word] = STATES[isOpenTask(part) ? 'task' : part.state] ?? ['', part.state];
  const isRejected = part.state === 'approval-responded' && part.approval?.approved === false;
  const summary = element('summary', {},
    element('span', { class: `dot ${isRejected ? 'warn' : dot}`, 'aria-hidden': 'true' }),
    element('b', { class: 'mono' }, visibleControls(toolName(part))),
    element('span', { class: 'muted small' }, isRejected ? 'rejected' : word || outputSummary(part.output)),
    element('span', { class: 'grow' }),
    element('span', { class: 'muted small num' }, formatDuration(part.durationMs)));
  const body = element('div', { class: 'body' }, section('Arguments', formatJson(part.input)));
  if (part.state === 'output-available') body.append(section('Result', formatJson(part.output)));
  if (part.errorText) body.append(section('Error', visibleControls(part.errorText)));
  if (part.approval?.reason) body.append(section('Reason', visibleControls(part.approval.reason)));
  body.append(element('p', { class: 'small' }, element('a', { href: callUrl(part.toolCallId) }, 'Open the call')));
  return element('details', { class: 'call', open: isOpen }, summary, body);
}

function section(title, text) {
  return element('div', {}, element('h3', { class: 'small muted' }, title), element('pre', { tabindex: '0' }, text));
}

/** A few words about a result. */
function outputSummary(output) {
  const list = Array.isArray(output) ? output : output?.results;
  if (!Array.isArray(list)) return 'done';
  return list.length === 1 ? '1 result' : `${list.length.toLocaleString('en')} results`;
}

function approvalNode(part, context) {
  const { preview, args, expiresAt } = part.approval.descriptor ?? {};
  const countdown = element('span', { class: 'num', 'data-expires': expiresAt });
  const title = element('b', { dir: 'auto' }, visibleControls(preview ?? 'Run this call?'));
  const asked = element('span', { class: 'small' },
    'Asked by ', element('code', {}, visibleControls(toolName(part))), ', expires in ', countdown);
  const node = element('div', { class: 'ask', role: 'group', 'aria-label': `Confirmation of ${toolName(part)}` },
    element('div', {}, title, ' ', asked),
    element('div', { class: 'panel' }, element('div', { class: 'body' }, factsNode(args ?? part.input))));
  node.append(answerForm(part, args ?? part.input, context));
  updateCountdowns(node);
  return node;
}

/** The members of a value, or the value itself. */
export function factsNode(args) {
  const entries = args && typeof args === 'object' && !Array.isArray(args) ? Object.entries(args) : [['', args]];
  if (entries.length === 0) return element('p', { class: 'muted' }, 'Without arguments.');
  const text = (value) => (typeof value === 'string' ? visibleControls(value.slice(0, MAX_FACT_CHARS))
    + (value.length > MAX_FACT_CHARS ? '…' : '') : formatJson(value, MAX_FACT_CHARS));
  const facts = entries.flatMap(([name, value]) =>
    [element('dt', {}, visibleControls(name)), element('dd', { dir: 'auto' }, text(value))]);
  return element('dl', { class: 'facts' }, facts);
}

/** Approve, edit and approve, reject. */
function answerForm(part, args, { answer, canAnswer }) {
  const button = (label, kind, action) => {
    const node = element('button', { type: 'button', class: `button ${kind}`, disabled: !canAnswer }, label);
    node.addEventListener('click', action);
    return node;
  };
  const id = `edit-${part.approval.id}`;
  const input = element('textarea', { id, class: 'mono', rows: '6', spellcheck: 'false' });
  input.value = JSON.stringify(args, null, 2);
  const error = element('p', { class: 'error', id: `${id}-error`, role: 'alert' });
  const field = element('div', { class: 'field', hidden: true },
    element('label', { for: id }, 'Arguments as JSON'), input, error);
  const fail = (message) => {
    error.textContent = message;
    input.setAttribute('aria-invalid', 'true');
    input.setAttribute('aria-describedby', error.id);
    input.focus();
  };
  const approve = button('Approve', 'primary', async () => {
    if (field.hidden) return answer(part, { approved: true });
    let edited;
    try {
      edited = JSON.parse(input.value);
    } catch (problem) {
      return fail(`This is not JSON: ${problem.message}`);
    }
    const message = await answer(part, { approved: true, args: edited, keepOnError: true });
    return message ? fail(message) : undefined;
  });
  const edit = button('Edit', '', () => {
    field.hidden = !field.hidden;
    approve.textContent = field.hidden ? 'Approve' : 'Approve with these arguments';
    edit.textContent = field.hidden ? 'Edit' : 'Do not edit';
    if (!field.hidden) input.focus();
  });
  const reject = button('Reject', 'danger', () => answer(part, { approved: false }));
  return element('div', { class: 'answer' }, field, element('div', { class: 'actions' }, approve, edit, reject));
}

/** Writes the time that is left into every countdown below `root`; what has expired cannot be approved. */
export function updateCountdowns(root, now = Date.now()) {
  for (const node of root.querySelectorAll('[data-expires]')) {
    const left = Math.max(0, Math.ceil((Date.parse(node.dataset.expires) - now) / 1000));
    node.textContent = left > 0 ? formatClock(left) : 'now: it has expired';
    const ask = node.closest('.ask');
    if (left === 0 && ask) ask.querySelectorAll('button').forEach((button) => { button.disabled = true; });
  }
}
