// A chosen file is read here, and its text goes into the form: the server gets texts only.

const file = document.querySelector('[data-upload-file]');

file?.addEventListener('change', async () => {
  const chosen = file.files[0];
  if (!chosen) return;
  const form = file.form;
  form.elements.namedItem('text').value = await chosen.text();
  form.elements.namedItem('name').value = chosen.name;
});
