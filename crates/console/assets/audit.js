// While the audit is being verified, shows how far it is, and then the result.

const PAUSE = 500;

async function follow() {
  const now = document.getElementById('verified');
  if (!('verifying' in now.dataset)) return;
  const response = await fetch(location.href, { credentials: 'same-origin' }).catch(() => undefined);
  if (response?.redirected) return;
  if (response?.ok) {
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    now.replaceWith(page.getElementById('verified'));
  }
  setTimeout(follow, PAUSE);
}

setTimeout(follow, PAUSE);
