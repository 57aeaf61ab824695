// Markdown to DOM nodes. Text of models, tools and users is hostile: nothing here parses HTML, links lead only where
// `safeUrl` allows, and the cost is linear in the length of the text.

import { element, visibleControls } from './dom.js';

/** Longer blocks are shown as plain text. */
const MAX_INLINE_CHARS = 20_000;
/** How far the closing sign of an inline element is searched. */
const MAX_SPAN_CHARS = 2_000;
const MAX_QUOTE_DEPTH = 4;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const SPECIAL = /[\\`*_[<~]|!(?=\[)|https?:\/\//g;
const CITATION = /^\[([a-z][a-z0-9_-]*:[^\s[\]]{1,200})\](?!\()/;

/** The URL, if a link may lead there. */
export function safeUrl(text) {
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * Shows markdown in `container`. Blocks that have not changed since the last call keep their nodes, so that a text that
 * grows is not built anew. `citation(id)` returns the node of a citation, or null.
 */
export function renderMarkdown(container, text, citation = () => null) {
  const blocks = splitBlocks(text.replaceAll('\r\n', '\n').split('\n'));
  const known = container.markdownBlocks ?? [];
  let same = 0;
  while (same < blocks.length && same < known.length && blocks[same].source === known[same].source) same += 1;
  known.slice(same).forEach((block) => block.node.remove());
  container.markdownBlocks = blocks.map((block, index) => {
    if (index < same) return known[index];
    const node = blockNode(block, citation, 0);
    container.append(node);
    return { source: block.source, node };
  });
}

/** Blocks of lines: `{ kind, source, … }`. */
function splitBlocks(lines) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at].trim() === '') {
      at += 1;
      continue;
    }
    const { block, next } = readBlock(lines, at);
    block.source = lines.slice(at, next).join('\n');
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function readBlock(lines, at) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return { block: { kind: 'heading', level: heading[1].length, text: heading[2] }, next: at + 1 };
  if (RULE.test(line)) return { block: { kind: 'rule' }, next: at + 1 };
  if (QUOTE.test(line)) {
    const next = endOf(lines, at, (other) => QUOTE.test(other));
    return { block: { kind: 'quote', lines: lines.slice(at, next).map((other) => QUOTE.exec(other)[1]) }, next };
  }
  if (ITEM.test(line)) {
    // A list of the other kind is another list.
    const isNumbered = (other) => /^\d/.test(other);
    const next = endOf(lines, at, (other) =>
      (ITEM.test(other) && isNumbered(other) === isNumbered(line)) || /^ {2,}\S/.test(other));
    return { block: { kind: 'list', lines: lines.slice(at, next) }, next };
  }
  if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '') && lines[at + 1].includes('-')) {
    const next = endOf(lines, at + 2, (other) => other.includes('|'));
    return { block: { kind: 'table', head: line, rows: lines.slice(at + 2, next) }, next };
  }
  const next = endOf(lines, at + 1, (other) => other.trim() !== '' && !startsBlock(other));
  return { block: { kind: 'paragraph', text: lines.slice(at, next).join('\n') }, next };
}

function readFence(lines, at, [, fence, language]) {
  const isEnd = (line) => {
    const trimmed = line.trim();
    return trimmed.length >= fence.length && trimmed === fence[0].repeat(trimmed.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join('\n');
  return { block: { kind: 'code', language, text }, next: Math.min(end + 1, lines.length) };
}

function endOf(lines, from, belongs) {
  let end = from;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return end;
}

function startsBlock(line) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
}

function blockNode(block, citation, depth) {
  switch (block.kind) {
    // The page has its own first two levels.
    case 'heading': return inline(element(`h${Math.min(block.level + 2, 6)}`, { dir: 'auto' }), block.text, citation);
    case 'rule': return element('hr');
    case 'code': return element('pre', { tabindex: '0' }, element('code', {}, visibleControls(block.text)));
    case 'list': return listNode(block.lines, citation);
    case 'table': return tableNode(block, citation);
    case 'quote': return quoteNode(block, citation, depth);
    default: return inline(element('p', { dir: 'auto' }), block.text, citation);
  }
}

function quoteNode(block, citation, depth) {
  if (depth >= MAX_QUOTE_DEPTH) return inline(element('blockquote'), block.lines.join('\n'), citation);
  return element('blockquote', {}, splitBlocks(block.lines).map((inner) => blockNode(inner, citation, depth + 1)));
}

/** Items that are indented further form a list within the item before. */
function listNode(lines, citation) {
  const root = { indent: -1, node: null };
  const open = [root];
  let item = null;
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (!match) {
      if (item) inline(item, `\n${line.trim()}`, citation);
      continue;
    }
    const [, { length: indent }, sign, text] = match;
    while (open.length > 1 && indent < open.at(-1).indent) open.pop();
    if (open.length === 1 || indent > open.at(-1).indent + 1) {
      const isOrdered = /\d/.test(sign);
      const start = isOrdered && parseInt(sign, 10) !== 1 ? parseInt(sign, 10) : null;
      const node = element(isOrdered ? 'ol' : 'ul', { start });
      if (item && open.length > 1) item.append(node);
      else if (root.node) root.node.append(element('li', {}, node));
      root.node ??= node;
      open.push({ indent, node });
    }
    item = inline(element('li', { dir: 'auto' }), text, citation);
    open.at(-1).node.append(item);
  }
  return root.node;
}

function tableNode({ head, rows }, citation) {
  const cells = (line) => line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|').map((cell) => cell.trim());
  const row = (line, name) => element('tr', {}, cells(line).map((cell) => inline(element(name), cell, citation)));
  const table = element('table', {},
    element('thead', {}, row(head, 'th')), element('tbody', {}, rows.map((line) => row(line, 'td'))));
  return element('div', { class: 'scroll', tabindex: '0' }, table);
}

/** Appends text with its inline elements to `node`. */
function inline(node, text, citation) {
  if (text.length > MAX_INLINE_CHARS) {
    node.append(text);
    return node;
  }
  let plain = '';
  const flush = () => {
    if (plain) node.append(plain);
    plain = '';
  };
  for (let at = 0; at < text.length;) {
    SPECIAL.lastIndex = at;
    const special = SPECIAL.exec(text);
    if (!special) {
      plain += text.slice(at);
      break;
    }
    plain += text.slice(at, special.index);
    const found = inlineElement(text, special.index, citation);
    if (found) {
      flush();
      node.append(found.node);
      at = found.next;
    } else {
      plain += text[special.index];
      at = special.index + 1;
    }
  }
  flush();
  return node;
}

/** The inline element that begins at a position: `{ node, next }`. */
function inlineElement(text, at, citation) {
  const sign = text[at];
  if (sign === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
    return { node: document.createTextNode(text[at + 1]), next: at + 2 };
  }
  if (sign === '`') return codeSpan(text, at);
  if (sign === '[') return bracket(text, at, citation);
  // A picture of another host would tell it who reads: it is a link.
  if (sign === '!') return bracket(text, at + 1, () => null);
  if (sign === '<') return autolink(text, at);
  if (sign === 'h') return bareLink(text, at);
  for (const [mark, name] of [['**', 'strong'], ['__', 'strong'], ['~~', 's'], ['*', 'em'], ['_', 'em']]) {
    if (text.startsWith(mark, at)) return emphasis(text, at, mark, name, citation);
  }
  return null;
}

function closing(text, mark, from) {
  const end = text.slice(from, from + MAX_SPAN_CHARS).indexOf(mark);
  return end <= 0 ? -1 : from + end;
}

function codeSpan(text, at) {
  const [mark] = /^`+/.exec(text.slice(at, at + 32));
  const end = closing(text, mark, at + mark.length);
  if (end < 0) return null;
  const code = text.slice(at + mark.length, end).replace(/^ (.*) $/s, '$1');
  return { node: element('code', {}, visibleControls(code)), next: end + mark.length };
}

function emphasis(text, at, mark, name, citation) {
  const from = at + mark.length;
  // `snake_case` and `2 * 3` are no emphasis.
  if (/\s/.test(text[from] ?? ' ') || (mark[0] === '_' && /\w/.test(text[at - 1] ?? ''))) return null;
  const end = closing(text, mark, from);
  if (end < 0 || /\s/.test(text[end - 1]) || (mark[0] === '_' && /\w/.test(text[end + mark.length] ?? ''))) return null;
  return { node: inline(element(name), text.slice(from, end), citation), next: end + mark.length };
}

function bracket(text, at, citation) {
  const cited = CITATION.exec(text.slice(at, at + 220));
  const node = cited && citation(cited[1]);
  if (node) return { node, next: at + cited[0].length };
  const middle = closing(text, '](', at + 1);
  if (middle < 0) return null;
  const end = closing(text, ')', middle + 2);
  const url = end < 0 ? null : safeUrl(text.slice(middle + 2, end).trim().split(/\s/)[0]);
  return url && { node: link(url, text.slice(at + 1, middle)), next: end + 1 };
}

function autolink(text, at) {
  const end = closing(text, '>', at + 1);
  const inside = end < 0 ? '' : text.slice(at + 1, end);
  const url = /^[a-z]+:[^\s<>]+$/i.test(inside) ? safeUrl(inside) : null;
  return url && { node: link(url, inside), next: end + 1 };
}

function bareLink(text, at) {
  if (/\w/.test(text[at - 1] ?? '')) return null;
  const [found] = /^https?:\/\/[^\s<>"'`]*/.exec(text.slice(at, at + MAX_SPAN_CHARS));
  const shown = found.replace(/[.,;:!?)\]}*_]+$/, '');
  const url = safeUrl(shown);
  return url && { node: link(url, shown), next: at + shown.length };
}

/** Opens elsewhere, without telling where the reader came from. */
function link(url, text) {
  return element('a', { href: url, target: '_blank', rel: 'noopener noreferrer nofollow' }, visibleControls(text));
}
