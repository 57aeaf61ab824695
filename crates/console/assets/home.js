// Fills the reader's key into the recipes: it stays in this page, nothing is sent or stored. While the tools are
// watched, the page follows the build.

const field = document.querySelector('[data-recipe-key]');
const texts = [...document.querySelectorAll('[data-recipes] pre')].map((pre) => [pre, pre.textContent]);

field?.addEventListener('input', () => {
  const key = field.value.trim() || 'YOUR_KEY';
  for (const [pre, text] of texts) pre.textContent = text.replaceAll('YOUR_KEY', key);
});

const build = document.querySelector("[data-follow]");

async function follow() {
  const response = await fetch("/", { credentials: "same-origin" }).catch(() => undefined);
  if (response?.ok) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (page.querySelector("[data-follow]")?.dataset.follow !== build.dataset.follow) return location.reload();
  }
  setTimeout(follow, 2000);
}

if (build) setTimeout(follow, 2000);
