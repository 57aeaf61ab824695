import { ToolError, ErrorType } from '../_core/error-types.js';

export async function execute() {
  throw new ToolError(ErrorType.PERMANENT, 'The service answers with status 503', { retryable: false });
}
