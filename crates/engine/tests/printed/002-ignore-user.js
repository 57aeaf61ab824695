import { ToolError, ErrorType } from '../_core/error-types.js';

/**
 * Block user for specified duration
 */
export async function execute({ args, context }) {
  const { duration_seconds, farewell_message } = args;

  // Semantic validation (schema already validated types/structure)
  if (!context.session.isActive) {
    // Expected domain failure - return as result, not exception
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot timeout user - session already ended',
        retryable: false
      }
    };
  }

  // Calculate timeout
  const timeoutUntil = Date.now() + (duration_seconds * 1000);

  // Send timeout command to client (side effect)
  try {
    await context.messaging.send({
      type: 'timeout',
      durationSeconds: duration_seconds,
      timeoutUntil,
      farewellMessage: farewell_message
    });
  } catch (error) {
    // Unexpected failure - throw ToolError
    throw new ToolError(ErrorType.TRANSIENT, 'Failed to send timeout command', {
      retryable: true,
      partialSideEffects: false
    });
  }

  // Log for audit trail
  context.audit.log('user_timeout', {
    duration: duration_seconds,
    timeoutUntil
  });

  // Return success WITH INTENTS
  return {
    ok: true,
    data: {
      timeoutUntil,
      duration: duration_seconds
    },
    intents: [
      { type: 'END_VOICE_SESSION', after: 'farewell_spoken' },
      { type: 'SUPPRESS_AUDIO', value: true }
    ]
  };
}
