import { ToolError, ErrorType } from '../_core/error-types.js';

const MINUTE = 60 * 1000;
const DEFAULT_WINDOW = 7 * 24 * 60 * MINUTE;

/** Proposes times at which all attendees are free, and stores them as a draft. */
export async function execute({ args, context }) {
  if (!context.session.isActive) {
    return failure(ErrorType.SESSION_INACTIVE, 'Cannot plan an event: the session has ended');
  }

  const window = planWindow(args, Date.now());
  const problem = checkWindow(args, window);
  if (problem !== null) return failure(ErrorType.VALIDATION, problem);

  let plan;
  try {
    plan = await context.calendar.propose({
      title: args.title,
      attendees: args.attendees,
      durationMinutes: args.duration_minutes,
      preferredTimes: args.preferred_times ?? [],
      windowStart: new Date(window.start).toISOString(),
      windowEnd: new Date(window.end).toISOString(),
      timezone: args.timezone,
    });
  } catch (error) {
    throw translate(error, args.timezone);
  }
  return { ok: true, data: proposal(args, plan) };
}

function planWindow(args, now) {
  const length = args.duration_minutes * MINUTE;
  const requested = args.window_start === undefined ? now : Date.parse(args.window_start);
  const start = Math.max(requested, now);
  if (args.window_end !== undefined) return { now, start, end: Date.parse(args.window_end), length };
  const preferredEnds = (args.preferred_times ?? []).map((time) => Date.parse(time) + length);
  return { now, start, end: Math.max(start + DEFAULT_WINDOW, ...preferredEnds), length };
}

function checkWindow(args, { now, start, end, length }) {
  if (args.window_end !== undefined && end <= now) return 'window_end must lie in the future';
  if (end <= start) return 'window_end must be after window_start';
  if (end - start < length) return 'The window is shorter than duration_minutes';
  for (const time of args.preferred_times ?? []) {
    const begin = Date.parse(time);
    if (begin < now) return `preferred_times: ${time} lies in the past`;
    if (begin < start || begin + length > end) return `preferred_times: ${time} does not fit into the window`;
  }
  return null;
}

function proposal(args, plan) {
  const slots = plan.slots.map((slot, index) => ({
    index,
    start: slot.start,
    end: slot.end,
    preferred: slot.preferred === true,
  }));
  const hasDraft = slots.length > 0;
  return {
    event_draft_id: hasDraft ? plan.draftId : null,
    title: args.title,
    attendees: args.attendees,
    duration_minutes: args.duration_minutes,
    timezone: args.timezone,
    slots,
    unknown_availability: plan.unknownAttendees ?? [],
    expires_at: hasDraft ? plan.expiresAt : null,
  };
}

function translate(error, timezone) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'The calendar did not respond in time', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The calendar is not reachable', { retryable: true });
    case 'INVALID_TIMEZONE':
      return new ToolError(ErrorType.VALIDATION, `timezone: ${timezone} is not a known IANA time zone`);
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The calendar rejected the request: ${error.message}`);
    case 'FORBIDDEN':
      return new ToolError(ErrorType.AUTH, 'The calendar does not allow this access');
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, 'No calendar is configured on this server');
    default:
      return error;
  }
}

function failure(type, message) {
  return { ok: false, error: { type, message, retryable: false } };
}
