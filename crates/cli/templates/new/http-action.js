import { ToolError, ErrorType } from '../_core/error-types.js';

// TODO(author): the address of the service. `[tool.{{TOOL_ID}}.http] allow` in toolwright.toml must name its host.
const SERVICE = 'https://api.example.com/items';

/**
 * @param {Toolwright.Call<{ input: string }>} call
 */
export async function execute({ args, context }) {
  const response = await context.http.fetch(SERVICE, {
    method: 'POST',
    // The same when this call is made again, and for no other call: the service can recognise what it has already done.
    headers: { 'idempotency-key': context.idempotencyKey },
    body: { input: args.input },
  });
  if (!response.ok) {
    const isTemporary = response.status === 429 || response.status >= 500;
    const type = isTemporary ? ErrorType.TRANSIENT : ErrorType.PERMANENT;
    throw new ToolError(type, `The service responded with status ${response.status}`, {
      retryable: isTemporary,
      partialSideEffects: response.status >= 500,
    });
  }
  return { ok: true, data: { result: response.json } };
}
