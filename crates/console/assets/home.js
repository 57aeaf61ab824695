// Fills the reader's key into the recipes. It stays in this page: nothing is sent or stored.

const field = document.querySelector('[data-recipe-key]');
const texts = [...document.querySelectorAll('[data-recipes] pre')].map((pre) => [pre, pre.textContent]);

field?.addEventListener('input', () => {
  const key = field.value.trim() || 'YOUR_KEY';
  for (const [pre, text] of texts) pre.textContent = text.replaceAll('YOUR_KEY', key);
});
