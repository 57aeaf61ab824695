import { ToolError, ErrorType } from '../_core/error-types.js';

const DEFAULT_FIELDS = { text: ['full_text', 'metadata', 'url'], voice: ['snippet', 'metadata', 'url'] };

/** Fetches records by id; every requested id is in `records` or in `not_found`. */
export async function execute({ args, context }) {
  const { ids, return_fields } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot fetch records: the session has ended',
        retryable: false,
      },
    };
  }

  const requested = new Set(return_fields ?? DEFAULT_FIELDS[context.mode]);
  // A whole text is too long to be spoken: in voice its snippet takes its place.
  const omitsText = context.mode === 'voice' && requested.delete('full_text');
  if (omitsText) requested.add('snippet');
  const startedAt = Date.now();
  let result;
  try {
    result = await context.kb.get({ ids, returnFields: [...requested] });
  } catch (error) {
    throw translate(error);
  }

  const byId = new Map(result.records.map((record) => [record.id, record]));
  const data = {
    records: ids.filter((id) => byId.has(id)).map((id) => project(byId.get(id), requested)),
    not_found: ids.filter((id) => !byId.has(id)),
    query_time_ms: Math.max(0, Date.now() - startedAt),
  };
  if (omitsText) data.omitted_fields = ['full_text'];
  return { ok: true, data };
}

function project(record, requested) {
  const result = {
    id: record.id,
    type: record.type,
    title: record.title,
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

function translate(error) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base is not reachable', { retryable: true });
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The request was rejected: ${error.message}`);
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No knowledge base is configured on this server');
    default:
      return error;
  }
}
