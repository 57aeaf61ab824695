import { ToolError, ErrorType } from '../_core/error-types.js';

/**
 * @param {Toolwright.Call<{ text: string }>} call
 */
export async function execute({ args, context }) {
  if (!context.session.isActive) {
    return {
      ok: false,
      error: { type: ErrorType.SESSION_INACTIVE, message: 'The session has ended', retryable: false },
    };
  }
  try {
    await context.messaging.send({ type: 'note', text: args.text });
  } catch {
    throw new ToolError(ErrorType.TRANSIENT, 'The note could not be delivered', {
      retryable: true,
      partialSideEffects: false,
    });
  }
  return { ok: true, data: { sent: true } };
}
