// Fills the reader's key into the recipes: it stays in this page, nothing is sent or stored. While the tools are
// watched, the page follows the build; and it shows the checks of the setup when they are done.

const PAUSE = 1000;

const field = document.querySelector('[data-recipe-key]');
const texts = [...document.querySelectorAll('[data-recipes] pre')].map((pre) => [pre, pre.textContent]);

field?.addEventListener('input', () => {
  const key = field.value.trim() || 'YOUR_KEY';
  for (const [pre, text] of texts) pre.textContent = text.replaceAll('YOUR_KEY', key);
});

// Typed keys and open recipes stay: only what has changed is replaced.
async function follow() {
  const response = await fetch('/', { credentials: 'same-origin' }).catch(() => undefined);
  if (response?.ok) {
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    const [now, before] = [fresh, document].map((page) => page.querySelector('#state'));
    if (now && now.dataset.follow !== before.dataset.follow) {
      for (const part of ['#state', '#setup', '.top']) {
        document.querySelector(part).replaceWith(fresh.querySelector(part));
      }
    }
    if (now && !('follow' in now.dataset)) return;
  }
  setTimeout(follow, PAUSE);
}

if (document.querySelector('[data-follow]')) setTimeout(follow, PAUSE);
