import { ErrorType, IntentType } from '../_core/error-types.js';

/** Requests the end of the voice session; the orchestrator waits for the right moment. */
export async function execute({ args, context }) {
  const { reason = 'user_request', farewell_message } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'The voice session has already ended',
        retryable: false,
      },
    };
  }

  const after = farewell_message === undefined ? 'current_turn' : 'farewell_spoken';
  context.audit.log('voice_session_end_requested', { reason, after });

  return {
    ok: true,
    data: { ending: true, ends_after: after, reason, farewell_message: farewell_message ?? null },
    intents: [{ type: IntentType.END_VOICE_SESSION, after }],
  };
}
