const PATTERNS = { email: /[\w.+-]+@[\w-]+\.[\w.]+/g, url: /https?:\/\/[^\s]+/g, date: /\d{4}-\d{2}-\d{2}/g };

export async function execute({ args }) {
  const kinds = args.kinds ?? Object.keys(PATTERNS);
  const found = {};
  for (const kind of kinds) found[kind] = args.text.match(PATTERNS[kind]) ?? [];
  return { ok: true, data: { found, words: args.text.split(/\s+/).length, locale: args.locale } };
}
