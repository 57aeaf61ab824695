import { ToolError, ErrorType } from '../_core/error-types.js';

/**
 * @param {Toolwright.Call<{ query: string, top_k: number }>} call
 */
export async function execute({ args, context }) {
  try {
    const found = await context.kb.search({ query: args.query, topK: args.top_k, returnFields: ['snippet', 'url'] });
    const results = found.map(({ id, title, snippet, url, score }) => ({ id, title, snippet, url, score }));
    return { ok: true, data: { results } };
  } catch (error) {
    if (error.code === 'TIMEOUT') {
      throw new ToolError(ErrorType.TRANSIENT, 'The search timed out', { retryable: true });
    }
    if (error.code === 'NOT_CONFIGURED') {
      throw new ToolError(ErrorType.PERMANENT, 'No knowledge base is configured');
    }
    throw error;
  }
}
