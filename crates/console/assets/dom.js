// Elements, requests and times: what the scripts of several pages share. Has no effect of its own.

/** An element with children, which may be lists; a string becomes a text node. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, '');
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child != null) node.append(child);
  return node;
}

/** Control characters that reorder text, in a form that can be seen. */
export function visibleControls(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) =>
    `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The name of this browser, which stays: on a server without keys a block applies to it, in voice and in writing. */
export function clientId() {
  const key = 'toolwright-client';
  localStorage.setItem(key, localStorage.getItem(key) ?? `console-${crypto.randomUUID()}`);
  return localStorage.getItem(key);
}

/** The token that proves a request to come from a page of the console. */
export const csrf = () => document.querySelector('meta[name="csrf"]')?.content ?? '';

/** `fetch` with the token; for the same server only. */
export function send(path, options = {}) {
  const headers = { 'x-csrf-token': csrf(), ...options.headers };
  return fetch(path, { method: 'POST', credentials: 'same-origin', ...options, headers });
}

/** Sends JSON. */
export function sendJson(path, body) {
  return send(path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

const sameDay = (a, b) => a.toDateString() === b.toDateString();

/** Shows the times below `root` in the reader's zone, short on the same day. */
export function localizeTimes(root = document) {
  for (const time of root.querySelectorAll('time[datetime]:not([data-local])')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.textContent;
    const clock = at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
    time.textContent = sameDay(at, new Date()) ? clock : `${at.toLocaleDateString()} ${clock}`;
    time.dataset.local = '';
  }
}
