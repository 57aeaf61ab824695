import { ToolError, ErrorType } from '../_core/error-types.js';

export async function execute() {
  throw new ToolError(ErrorType.TRANSIENT, 'The service is busy', { retryable: true });
}
