// What every page has: times in the reader's zone, copy buttons. Scripts of pages import `dom.js`, never this file: it
// would run twice.

import { localizeTimes } from './dom.js';

async function copy(button) {
  const text = button.dataset.copy ?? button.parentElement.querySelector('pre')?.textContent ?? '';
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Press Ctrl-C';
    const shown = button.parentElement.querySelector('pre');
    if (shown) getSelection().selectAllChildren(shown);
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy], [data-copy-code]');
  if (button) copy(button);
});

// A filter takes effect when it is chosen.
document.addEventListener('change', (event) => {
  if (event.target.matches('form[data-submit-on-change] select')) event.target.form.requestSubmit();
});

// What scrolls can be scrolled with the keyboard.
const scrolling = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    if (scrolls && !target.hasAttribute('tabindex')) target.tabIndex = 0;
  }
});
document.querySelectorAll('.scroll, pre').forEach((part) => scrolling.observe(part));

localizeTimes();
