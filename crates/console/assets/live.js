// On every page: while it is seen, it follows the calls of the server. The badge says how many requests wait for an
// answer. Parts with `data-live` are read again from the server when something has happened, so that there is one
// renderer, and the filters of the address hold. Also counts down what expires.

import { element, localizeTimes } from './dom.js';

/** The least time between two readings, and the time after one that failed, in milliseconds. */
const PAUSE = 700;
const RETRY = 5000;

const parts = [...document.querySelectorAll('[data-live]')];
const events = new Set(parts.flatMap((part) => part.dataset.live.split(' ')));
const toggle = document.querySelector('[data-live-toggle]');
let source;
let timer;
let isPaused = false;
/** Something has happened that is not shown. */
let isBehind = false;

/** Someone reads or uses this part: it must not change under their hands. */
const isInUse = (part) =>
  part.contains(document.activeElement) || (!getSelection().isCollapsed && part.contains(getSelection().anchorNode));

async function refresh() {
  timer = undefined;
  isBehind = document.hidden;
  if (isBehind) return;
  try {
    if (isPaused || parts.length === 0 || !await refreshParts()) await refreshBadge();
  } catch {
    // The server cannot be reached at the moment.
    refreshSoon(RETRY);
  }
}

/** Whether the page could be read again: not one that answered a form, or after signing out. */
async function refreshParts() {
  const response = await fetch(location.href, { credentials: 'same-origin' });
  if (!response.ok || response.redirected) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of parts) {
    const now = fresh.getElementById(part.id);
    if (isInUse(part)) isBehind = true;
    else if (now) part.replaceChildren(...now.childNodes);
  }
  showWaiting(fresh.querySelector('[data-pending]')?.firstChild.data ?? '');
  localizeTimes();
  countDown();
  return true;
}

async function refreshBadge() {
  const response = await fetch('/confirmations/count', { credentials: 'same-origin' });
  if (!response.ok || response.redirected) return;
  const { waiting } = await response.json();
  showWaiting(waiting > 99 ? '99+' : waiting > 0 ? String(waiting) : '');
}

/** Shows the number of waiting requests, or no badge. */
function showWaiting(text) {
  const link = document.querySelector('.nav a[href="/confirmations"]');
  const badge = link?.querySelector('[data-pending]');
  if (badge && text) badge.firstChild.data = text;
  else if (badge) badge.remove();
  else if (text) {
    link?.append(element('span', { class: 'chip warn count', 'data-pending': true }, text,
      element('span', { class: 'unseen' }, ' waiting')));
  }
}

function refreshSoon(pause = PAUSE) {
  timer ??= setTimeout(refresh, pause);
}

/** A call concerns the badge if it waits for approval; every answer does. */
function onEvent({ type, data }) {
  if (events.has(type) || type === 'answer' || JSON.parse(data).outcome === 'CONFIRMATION_REQUIRED') refreshSoon();
}

/** Listens while the page is seen: a browser has few connections to one server for all of its tabs. */
function listen() {
  if (document.hidden) {
    source?.close();
    source = undefined;
    return;
  }
  if (source) return;
  source = new EventSource('/v1/call-events');
  for (const name of ['call', 'answer']) source.addEventListener(name, onEvent);
  source.addEventListener('lagged', () => refreshSoon());
  // After a lost connection something may have been missed.
  let wasLost = false;
  source.addEventListener('error', () => { wasLost = true; });
  source.addEventListener('open', () => { if (wasLost) refreshSoon(); });
}

listen();
document.addEventListener('visibilitychange', () => {
  listen();
  if (!document.hidden) refreshSoon();
});
addEventListener('pagehide', () => { source?.close(); source = undefined; });
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  listen();
  refreshSoon();
});
for (const name of ['focusout', 'selectionchange']) {
  document.addEventListener(name, () => { if (isBehind) refreshSoon(); });
}

if (toggle) {
  toggle.hidden = false;
  toggle.addEventListener('click', () => {
    isPaused = !isPaused;
    toggle.setAttribute('aria-pressed', String(!isPaused));
    toggle.textContent = isPaused ? 'Paused' : 'Live';
    if (!isPaused) refreshSoon();
  });
}

/** Shows how long each request can still be answered. */
function countDown() {
  for (const chip of document.querySelectorAll('[data-expires]')) {
    const seconds = Math.max(0, Math.round((Number(chip.dataset.expires) - Date.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    if (seconds === 0) chip.textContent = 'expired';
    else chip.textContent = minutes > 0 ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
  }
}

if (document.querySelector('[data-live]')) {
  countDown();
  setInterval(countDown, 1000);
}
