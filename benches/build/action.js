import { ToolError, ErrorType } from '../_core/error-types.js';

export async function execute({ args, context }) {
  const { title, priority, participants = [], due_at } = args;
  if (!context.session.isActive) {
    return { ok: false, error: { type: ErrorType.SESSION_INACTIVE, message: 'The session has ended', retryable: false } };
  }
  const owners = participants.filter((person) => person.role === 'owner').map((person) => person.email);
  const ref = 'NOUN_' + title.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, 40);
  try {
    await context.messaging.send({ type: 'NOUN', ref, priority, due_at });
  } catch {
    throw new ToolError(ErrorType.TRANSIENT, 'The message could not be sent', { retryable: true, partialSideEffects: false });
  }
  context.audit.log('NOUN', { ref, count: participants.length });
  return { ok: true, data: { ref, owners, due_at: due_at ?? null }, intents: [{ type: 'SET_PENDING_MESSAGE', message: ref }] };
}
