// Follows the calls: parts of the page with `data-live` are read again from the server when something has happened, so that
// there is one renderer, and the filters of the address hold. Also counts down what expires.

import { localizeTimes } from './dom.js';

/** The least time between two readings, in milliseconds. */
const PAUSE = 700;

const parts = [...document.querySelectorAll('[data-live]')];
const toggle = document.querySelector('[data-live-toggle]');
let isPaused = false;
let isWaiting = false;

/** Someone reads or uses this part: it must not change under their hands. */
const isInUse = (part) =>
  part.contains(document.activeElement) || (!getSelection().isCollapsed && part.contains(getSelection().anchorNode));

async function refresh() {
  isWaiting = false;
  if (isPaused || document.hidden || parts.some(isInUse)) return;
  const response = await fetch(location.href, { credentials: 'same-origin' });
  if (!response.ok || response.redirected) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of parts) {
    const now = fresh.getElementById(part.id);
    if (now && !isInUse(part)) part.replaceChildren(...now.childNodes);
  }
  const nav = fresh.querySelector('nav.nav');
  if (nav) document.querySelector('nav.nav').replaceChildren(...nav.childNodes);
  localizeTimes();
  countDown();
}

function refreshSoon() {
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(refresh, PAUSE);
}

if (parts.length > 0) {
  const source = new EventSource('/v1/call-events');
  const names = new Set(parts.flatMap((part) => part.dataset.live.split(' ')));
  for (const name of names) source.addEventListener(name, refreshSoon);
  source.addEventListener('lagged', refreshSoon);
  // After a lost connection something may have been missed.
  let wasLost = false;
  source.addEventListener('error', () => { wasLost = true; });
  source.addEventListener('open', () => { if (wasLost) refreshSoon(); });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshSoon(); });
  addEventListener('pagehide', () => source.close());
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

countDown();
setInterval(countDown, 1000);
