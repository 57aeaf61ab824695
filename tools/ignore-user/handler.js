import { ToolError, ErrorType, IntentType } from '../_core/error-types.js';

/** Blocks the current user: tells the client, records it, and asks for the end of a voice session. */
export async function execute({ args, context }) {
  const { duration_seconds, farewell_message } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot block the user: the session has already ended',
        retryable: false,
      },
    };
  }

  const timeoutUntil = Math.round(Date.now() + duration_seconds * 1000);

  try {
    await context.messaging.send({
      type: 'timeout',
      durationSeconds: duration_seconds,
      timeoutUntil,
      farewellMessage: farewell_message,
    });
  } catch (error) {
    // The server keeps the block before it tells the client: a client that has gone away is blocked all the same.
    throw new ToolError(ErrorType.TRANSIENT, 'The block could not be recorded, or not be sent to the client', {
      retryable: true,
      partialSideEffects: error?.code === 'TIMEOUT',
    });
  }

  context.audit.log('user_timeout', { duration: duration_seconds, timeoutUntil, reason: 'tool_invocation' });

  return { ok: true, data: { timeoutUntil, duration: duration_seconds }, intents: intentsFor(context.mode) };
}

/** A text session has no voice session to end, so only voice asks for that. */
function intentsFor(mode) {
  const silence = { type: IntentType.SUPPRESS_AUDIO, value: true };
  if (mode !== 'voice') return [silence];
  return [{ type: IntentType.END_VOICE_SESSION, after: 'farewell_spoken' }, silence];
}
