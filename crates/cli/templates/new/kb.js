/**
 * @param {Toolwright.Call<{ query: string }>} call
 */
export async function execute({ args, context }) {
  // TODO(author): choose the namespace and the fields, and remove this line.
  const found = await context.kb.search({ query: args.query, topK: 3, returnFields: ['snippet', 'url'] });
  const results = found.map(({ id, title, snippet, url, score }) => ({ id, title, snippet, url, score }));
  return { ok: true, data: { results } };
}
