import { ToolError, ErrorType } from '../_core/error-types.js';

// TODO(author): the address of the service. `[tool.{{TOOL_ID}}.http] allow` in toolwright.toml must name its host.
const SERVICE = 'https://api.example.com/items';

/**
 * @param {Toolwright.Call<{ query: string }>} call
 */
export async function execute({ args, context }) {
  const response = await context.http.fetch(`${SERVICE}?query=${encodeURIComponent(args.query)}`);
  if (!response.ok) {
    const isTemporary = response.status === 429 || response.status >= 500;
    const type = isTemporary ? ErrorType.TRANSIENT : ErrorType.PERMANENT;
    throw new ToolError(type, `The service responded with status ${response.status}`, { retryable: isTemporary });
  }
  return { ok: true, data: { result: response.json } };
}
