import { ToolError, ErrorType } from '../_core/error-types.js';

/** Writes an instant for a person; zones and languages are the host's, through `context.text`. */
export async function execute({ args, context }) {
  const { datetime, timezone = 'UTC', style = 'long', locale = 'en-US' } = args;
  try {
    const result = await context.text.formatDatetime({ instant: datetime, timezone, style, locale });
    return {
      ok: true,
      data: {
        formatted: result.formatted,
        iso: result.iso,
        timezone: result.timezone,
        utc_offset: result.utcOffset,
        weekday: result.weekday,
      },
    };
  } catch (error) {
    throw translate(error, timezone);
  }
}

function translate(error, timezone) {
  switch (error?.code) {
    case 'INVALID_TIMEZONE':
      return new ToolError(ErrorType.VALIDATION, `timezone: ${timezone} is not a known IANA time zone`);
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The date-time cannot be written: ${error.message}`);
    default:
      return error;
  }
}
