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

  const requested = new Set(return_fields ?? DEFAULT_FIELDS);
  // A whole text is too long to be spoken: in voice its snippet takes its place.
  const omitsText = context.mode === 'voice' && requested.delete('full_text');
  if (omitsText) requested.add('snippet');
  const withSnippets = include_snippets !== false;
  if (!withSnippets) requested.delete('snippet');
  const startedAt = Date.now();
  let found;
  try {
    found = await context.kb.search({
      query,
      namespace,
      filters,
      topK: top_k,
      returnFields: [...requested],
      includeSnippets: withSnippets,
    });
  } catch (error) {
    throw translate(error, namespace);
  }

  const data = {
    results: found.map((record) => evidence(record, requested)),
    query_time_ms: Math.max(0, Date.now() - startedAt),
  };
  if (omitsText) data.omitted_fields = ['full_text'];
  return { ok: true, data };
}

function evidence(record, requested) {
  const result = {
    id: record.id,
    type: record.type,
    title: record.title,
    score: record.score,
    source_type: record.sourceType ?? null,
    last_updated: record.lastUpdated ?? null,
  };
  if (requested.has('snippet')) result.snippet = record.snippet ?? null;
  if (requested.has('full_text')) result.full_text = record.fullText ?? null;
  if (requested.has('metadata')) result.metadata = record.metadata ?? {};
  if (requested.has('sources')) result.sources = record.sources ?? [];
  if (requested.has('url')) result.url = record.url ?? null;
  return result;
}

function translate(error, namespace) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base is not reachable', { retryable: true });
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
