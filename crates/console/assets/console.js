// What every page has: times in the reader's zone, copy buttons, the token for requests that change something.

/** The token that `fetch` sends as `x-csrf-token`. */
export const csrf = () => document.querySelector('meta[name="csrf"]')?.content ?? "";

/** `fetch` with the token; for the same server only. */
export function send(path, options = {}) {
  return fetch(path, {
    method: "POST",
    credentials: "same-origin",
    ...options,
    headers: { "x-csrf-token": csrf(), ...options.headers },
  });
}

/** A new element; texts stay texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const sameDay = (a, b) => a.toDateString() === b.toDateString();

/** Shows the times below `root` in the reader's zone, short on the same day. */
export function localizeTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.textContent;
    const clock = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    time.textContent = sameDay(at, new Date()) ? clock : `${at.toLocaleDateString()} ${clock}`;
    time.dataset.local = "";
  }
}

async function copy(button) {
  const text = button.dataset.copy ?? button.parentElement.querySelector("pre")?.textContent ?? "";
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl-C";
    const shown = button.parentElement.querySelector("pre");
    if (shown) getSelection().selectAllChildren(shown);
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-code]");
  if (button) copy(button);
});

// A filter takes effect when it is chosen.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-submit-on-change] select")) event.target.form.requestSubmit();
});

localizeTimes();
