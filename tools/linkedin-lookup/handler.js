import { ToolError, ErrorType } from '../_core/error-types.js';

/** More records are read than returned, because most have no LinkedIn URL. */
const CANDIDATES = 10;
const LINKEDIN_URL = /^https:\/\/([a-z0-9-]+\.)*linkedin\.com\/\S+$/i;

/** Finds LinkedIn URLs in records of people and links. */
export async function execute({ args, context }) {
  const { name, company, namespace, top_k = 3 } = args;

  if (!context.session.isActive) {
    return failure(ErrorType.SESSION_INACTIVE, 'Cannot look up the person: the session has ended');
  }
  // Without words, every title would match.
  if (words(name).length === 0) {
    return failure(ErrorType.VALIDATION, 'name must have a letter or a digit');
  }

  const startedAt = Date.now();
  let found;
  try {
    found = await context.kb.search({
      query: company === undefined ? `${name} LinkedIn` : `${name} ${company} LinkedIn`,
      namespace,
      topK: CANDIDATES,
      returnFields: ['url', 'metadata'],
      includeSnippets: false,
    });
  } catch (error) {
    throw translate(error, namespace);
  }

  return {
    ok: true,
    data: { matches: select(found, name, top_k), query_time_ms: Math.max(0, Date.now() - startedAt) },
  };
}

function select(found, name, limit) {
  const matches = new Map();
  for (const record of found) {
    const url = storedUrl(record);
    if (url === null || matches.has(url) || !isNamed(record, name)) continue;
    matches.set(url, {
      id: record.id,
      title: record.title,
      linkedin_url: url,
      score: record.score,
      source_type: record.sourceType ?? null,
      last_updated: record.lastUpdated ?? null,
    });
  }
  return [...matches.values()].slice(0, limit);
}

function storedUrl(record) {
  if (record.type !== 'person' && record.type !== 'link') return null;
  const stored = [record.metadata?.linkedin_url, record.metadata?.linkedin, record.url];
  return stored.find((value) => typeof value === 'string' && LINKEDIN_URL.test(value)) ?? null;
}

function isNamed(record, name) {
  const inTitle = new Set(words(record.title));
  return words(name).every((word) => inTitle.has(word));
}

/** Lower-case words without accents, so that "José" finds "Jose". */
function words(text) {
  const plain = text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  return plain.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
}

function failure(type, message) {
  return { ok: false, error: { type, message, retryable: false } };
}

function translate(error, namespace) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base is not reachable', { retryable: true });
    case 'INVALID_NAMESPACE':
      return new ToolError(ErrorType.VALIDATION, `Invalid namespace: ${namespace}`);
    case 'FORBIDDEN':
      return new ToolError(ErrorType.AUTH, `The user may not read the namespace ${namespace}`);
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No knowledge base is configured on this server');
    default:
      return error;
  }
}
