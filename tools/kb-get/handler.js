import { ToolError, ErrorType } from '../_core/error-types.js';

const DEFAULT_FIELDS = ['full_text', 'metadata', 'url'];

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

  const fields = return_fields ?? DEFAULT_FIELDS;
  const startedAt = Date.now();
  let result;
  try {
    result = await context.kb.get({ ids, returnFields: fields });
  } catch (error) {
    throw translate(error);
  }

  const byId = new Map(result.records.map((record) => [record.id, record]));
  const wanted = new Set(fields);
  return {
    ok: true,
    data: {
      records: ids.filter((id) => byId.has(id)).map((id) => project(byId.get(id), wanted)),
      not_found: ids.filter((id) => !byId.has(id)),
      query_time_ms: Math.max(0, Date.now() - startedAt),
    },
  };
}

function project(record, wanted) {
  const result = {
    id: record.id,
    type: record.type,
    title: record.title,
    source_type: record.sourceType ?? null,
    last_updated: record.lastUpdated ?? null,
  };
  if (wanted.has('snippet')) result.snippet = record.snippet ?? null;
  if (wanted.has('full_text')) result.full_text = record.fullText ?? null;
  if (wanted.has('metadata')) result.metadata = record.metadata ?? {};
  if (wanted.has('sources')) result.sources = record.sources ?? [];
  if (wanted.has('url')) result.url = record.url ?? null;
  return result;
}

function translate(error) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The knowledge base is not reachable', { retryable: true });
    case 'RATE_LIMIT':
      return new ToolError(ErrorType.RATE_LIMIT, 'The knowledge base limits the request rate; wait before trying again', { retryable: true });
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The request was rejected: ${error.message}`);
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No knowledge base is configured on this server');
    default:
      return error;
  }
}
