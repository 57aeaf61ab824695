// The form of a tool's arguments: adds and removes items of lists, and shows the chosen alternative.

const forms = document.querySelectorAll("form");

/** Gives the new item's controls names of their own. */
function renumber(item, list, number) {
  const from = `${list}/new`;
  const to = `${list}/${number}`;
  for (const part of item.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "aria-describedby", "data-list"]) {
      const value = part.getAttribute(name);
      if (value?.includes(from)) part.setAttribute(name, value.replaceAll(from, to));
    }
  }
  for (const template of item.querySelectorAll("template")) renumber(template.content, list, number);
}

function items(list) {
  return [...list.children].filter((child) => child.classList.contains("item"));
}

function showButtons(list) {
  const count = items(list).length;
  const most = Number(list.dataset.most ?? Infinity);
  for (const button of list.querySelectorAll(":scope > .item > [data-remove-item]")) button.hidden = false;
  list.querySelector(":scope > [data-add-item]").hidden = count >= most;
}

function add(list) {
  const template = list.querySelector(":scope > template");
  const item = template.content.cloneNode(true);
  const number = Number(list.dataset.next ?? items(list).length);
  list.dataset.next = number + 1;
  // What is for browsers without scripts would be sent.
  for (const part of item.querySelectorAll("noscript")) part.remove();
  renumber(item, list.dataset.list, number);
  template.before(item);
  const added = items(list).at(-1);
  setUp(added);
  showButtons(list);
  added.querySelector("input, select, textarea")?.focus();
}

/** Only the chosen alternative is shown and sent. */
function choose(alternatives) {
  const chosen = alternatives.querySelector(":scope > select").value;
  for (const one of alternatives.querySelectorAll(":scope > [data-alternative]")) {
    one.hidden = one.dataset.alternative !== chosen;
  }
}

function setUp(root) {
  for (const list of root.querySelectorAll("[data-list]")) showButtons(list);
  for (const alternatives of root.querySelectorAll("[data-alternatives]")) choose(alternatives);
}

for (const form of forms) {
  form.addEventListener("click", (event) => {
    const list = event.target.closest("[data-list]");
    if (event.target.matches("[data-add-item]")) add(list);
    if (event.target.matches("[data-remove-item]")) {
      event.target.closest(".item").remove();
      showButtons(list);
      list.querySelector(":scope > [data-add-item]").focus();
    }
  });
  form.addEventListener("change", (event) => {
    const alternatives = event.target.closest("[data-alternatives]");
    if (alternatives && event.target.parentElement === alternatives) choose(alternatives);
  });
  setUp(form);
}
