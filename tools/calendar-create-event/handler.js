import { ToolError, ErrorType } from '../_core/error-types.js';

/** Commits one slot of a draft as an event. The orchestrator has already obtained the user's confirmation. */
export async function execute({ args, context }) {
  if (!context.session.isActive) {
    return failure(ErrorType.SESSION_INACTIVE, 'Cannot create the event: the session has ended');
  }

  const slotIndex = args.slot_index ?? 0;
  const draft = await attempt(() => context.calendar.getDraft({ draftId: args.event_draft_id }), false);
  const problem = checkDraft(args, draft, slotIndex);
  if (problem !== null) return problem;

  const event = await attempt(
    () =>
      context.calendar.commit({
        draftId: args.event_draft_id,
        slotIndex,
        note: args.note,
        executionId: context.executionId,
      }),
    true,
  );

  context.audit.log('calendar_event_created', { eventId: event.eventId, draftId: args.event_draft_id });
  return {
    ok: true,
    data: {
      event_id: event.eventId,
      title: event.title,
      start: event.start,
      end: event.end,
      timezone: event.timezone,
      attendees: event.attendees,
      conference_url: event.conferenceUrl ?? null,
    },
  };
}

function checkDraft(args, draft, slotIndex) {
  if (draft.status === 'committed') {
    return failure(ErrorType.CONFLICT, `This draft has already become the event ${draft.eventId}`);
  }
  if (draft.status === 'expired') {
    return failure(ErrorType.CONFLICT, 'This draft has expired; propose new times');
  }
  const slot = draft.slots[slotIndex];
  if (slot === undefined) {
    return failure(ErrorType.VALIDATION, `slot_index must be between 0 and ${draft.slots.length - 1}`);
  }
  if (args.expected_title !== undefined && args.expected_title !== draft.title) {
    return failure(ErrorType.CONFLICT, `expected_title differs from the title of the draft, “${draft.title}”`);
  }
  if (args.expected_start !== undefined && Date.parse(args.expected_start) !== Date.parse(slot.start)) {
    return failure(ErrorType.CONFLICT, `expected_start differs from slot ${slotIndex}, which starts at ${slot.start}`);
  }
  return null;
}

async function attempt(step, writes) {
  try {
    return await step();
  } catch (error) {
    throw translate(error, writes);
  }
}

/** A commit without a response may have succeeded. A draft becomes one event at most, so a retry cannot book it twice. */
function translate(error, writes) {
  const noResponse = { retryable: true, partialSideEffects: writes, idempotencyRequired: writes };
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The calendar did not respond in time', noResponse);
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The calendar is not reachable, or another call is committing this draft', { retryable: true });
    case 'NOT_FOUND':
      return new ToolError(ErrorType.NOT_FOUND, 'This user has no such event draft; propose the event first');
    case 'EXPIRED':
      return new ToolError(ErrorType.CONFLICT, 'This draft has expired; propose new times');
    case 'CONFLICT':
      return new ToolError(ErrorType.CONFLICT, 'The chosen time is no longer free; propose new times');
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The calendar rejected the request: ${error.message}`);
    case 'FORBIDDEN':
      return new ToolError(ErrorType.AUTH, 'The calendar does not allow creating this event');
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No calendar is configured on this server');
    default:
      return error;
  }
}

function failure(type, message) {
  return { ok: false, error: { type, message, retryable: false } };
}
