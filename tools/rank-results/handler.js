import { ErrorType } from '../_core/error-types.js';

const DAY = 24 * 60 * 60 * 1000;

/** Orders results by weighted relevance, recency and type. Uses no capability. */
export async function execute({ args }) {
  const rule = ruleOf(args);
  const sum = rule.weights.score + rule.weights.recency + rule.weights.type;
  if (sum <= 0) {
    return {
      ok: false,
      error: {
        type: ErrorType.VALIDATION,
        message: 'At least one weight must be above 0 (type counts only with preferred_types)',
        retryable: false,
      },
    };
  }

  const rated = args.results.map((result) => rate(result, rule, sum));
  rated.sort((a, b) => b.total - a.total); // stable: equal totals keep their order
  const unique = firstOfEachId(rated);
  const ranked = unique.slice(0, args.limit ?? unique.length).map((entry, index) => ({ rank: index + 1, ...entry }));
  return { ok: true, data: { ranked, duplicates_dropped: rated.length - unique.length } };
}

function ruleOf(args) {
  const { score = 0.7, recency = 0.2, type = 0.1 } = args.weights ?? {};
  const preferred = args.preferred_types ?? [];
  return {
    weights: { score, recency, type: preferred.length > 0 ? type : 0 },
    preferred,
    halfLife: (args.half_life_days ?? 90) * DAY,
    asOf: args.as_of === undefined ? Date.now() : Date.parse(args.as_of),
  };
}

function rate(result, rule, sum) {
  const parts = {
    score: result.score,
    recency: recencyOf(result.last_updated, rule),
    type: preferenceOf(result.type, rule.preferred),
  };
  const { weights } = rule;
  const total = (weights.score * parts.score + weights.recency * parts.recency + weights.type * parts.type) / sum;
  return {
    id: result.id,
    title: result.title ?? null,
    total: rounded(total),
    parts: { score: parts.score, recency: rounded(parts.recency), type: rounded(parts.type) },
  };
}

function recencyOf(lastUpdated, { asOf, halfLife }) {
  if (lastUpdated === undefined) return 0;
  const age = Math.max(0, asOf - Date.parse(lastUpdated));
  return Number.isNaN(age) ? 0 : 0.5 ** (age / halfLife);
}

function preferenceOf(type, preferred) {
  const position = preferred.indexOf(type);
  return position < 0 ? 0 : (preferred.length - position) / preferred.length;
}

function firstOfEachId(entries) {
  const seen = new Set();
  return entries.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** Six decimals, because engines may differ in the last bit of a power. */
function rounded(value) {
  return Math.round(value * 1e6) / 1e6;
}
