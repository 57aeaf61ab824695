import { ToolError, ErrorType } from '../_core/error-types.js';

const DEFAULT_FIELDS = ['snippet', 'metadata', 'url'];

/** Searches the knowledge base and returns evidence objects with citations. */
export async function execute({ args, context }) {
  const { query, namespace, filters, top_k, return_fields, include_snippets } = args;

  if (!context.session.isActive) {
    return failure(ErrorType.SESSION_INACTIVE, 'Cannot search: the session has ended');
  }
  const range = filters?.date_range;
  if (range?.start && range?.end && Date.parse(range.start) > Date.parse(range.end)) {
    return failure(ErrorType.VALIDATION, 'filters.date_range.start must not be after filters.date_range.end');
  }

  const fields = return_fields ?? DEFAULT_FIELDS;
  const withSnippets = include_snippets !== false;
  const startedAt = Date.now();
  let found;
  try {
    found = await context.kb.search({
      query,
      namespace,
      filters,
      topK: top_k,
      returnFields: fields,
      includeSnippets: withSnippets,
    });
  } catch (error) {
    throw translate(error, namespace);
  }

  const wanted = new Set(withSnippets ? fields : fields.filter((field) => field !== 'snippet'));
  return {
    ok: true,
    data: {
      results: found.map((record) => evidence(record, wanted)),
      query_time_ms: Math.max(0, Date.now() - startedAt),
    },
  };
}

function evidence(record, wanted) {
  const result = {
    id: record.id,
    type: record.type,
    title: record.title,
    snippet: wanted.has('snippet') ? record.snippet ?? null : null,
    score: record.score,
    source_type: record.sourceType ?? null,
    last_updated: record.lastUpdated ?? null,
    url: wanted.has('url') ? record.url ?? null : null,
    metadata: wanted.has('metadata') ? record.metadata ?? {} : {},
  };
  if (wanted.has('full_text')) result.full_text = record.fullText ?? null;
  if (wanted.has('sources')) result.sources = record.sources ?? [];
  return result;
}

function translate(error, namespace) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base is not reachable', { retryable: true });
    case 'RATE_LIMIT':
      return new ToolError(ErrorType.RATE_LIMIT, 'The knowledge base limits the request rate; wait before trying again', { retryable: true });
    case 'INVALID_NAMESPACE':
      return new ToolError(ErrorType.VALIDATION, `Invalid namespace: ${namespace}`);
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The search was rejected: ${error.message}`);
    case 'FORBIDDEN':
      return new ToolError(ErrorType.AUTH, `The user may not read the namespace ${namespace}`);
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No knowledge base is configured on this server');
    default:
      return error;
  }
}

function failure(type, message) {
  return { ok: false, error: { type, message, retryable: false } };
}
