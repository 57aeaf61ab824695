import { ErrorType } from '../_core/error-types.js';

const RECORDS = RECORDS_JSON;

export async function execute({ args, context }) {
  const { query, region, filters = {}, top_k, include_snippets } = args;
  if (!context.session.isActive) {
    return { ok: false, error: { type: ErrorType.SESSION_INACTIVE, message: 'The session has ended', retryable: false } };
  }
  const terms = query.toLowerCase().split(/\s+/);
  const hits = [];
  for (const record of RECORDS) {
    if (filters.tags && !filters.tags.every((tag) => record.tags.includes(tag))) continue;
    const title = record.title.toLowerCase();
    hits.push({ record, score: terms.some((term) => title.includes(term)) ? 0.9 : 0.5 });
  }
  hits.sort((a, b) => b.score - a.score);
  const results = hits.slice(0, top_k).map(({ record, score }) => ({
    id: record.id, title: record.title, snippet: include_snippets ? record.text.slice(0, 80) : null, score,
    url: `https://example.com/${region}/${record.id}`,
  }));
  return { ok: true, data: { results, total: hits.length } };
}
