// The module that handlers import as `../_core/error-types.js` or `../error-types.js`.
export const ErrorType = {
  VALIDATION: 'VALIDATION',
  NOT_FOUND: 'NOT_FOUND',
  SESSION_INACTIVE: 'SESSION_INACTIVE',
  TRANSIENT: 'TRANSIENT',
  PERMANENT: 'PERMANENT',
  RATE_LIMIT: 'RATE_LIMIT',
  AUTH: 'AUTH',
  CONFLICT: 'CONFLICT',
  INTERNAL: 'INTERNAL',
  MODE_RESTRICTED: 'MODE_RESTRICTED',
  BUDGET_EXCEEDED: 'BUDGET_EXCEEDED',
  CONFIRMATION_REQUIRED: 'CONFIRMATION_REQUIRED',
  UNAVAILABLE: 'UNAVAILABLE',
};

export class ToolError extends Error {
  constructor(type, message, options = {}) {
    super(message);
    this.name = 'ToolError';
    this.type = type;
    this.retryable = options.retryable || false;
    this.idempotencyRequired = options.idempotencyRequired || false;
    this.partialSideEffects = options.partialSideEffects || false;
    if (options.details !== undefined) this.details = options.details;
  }
}

export const IntentType = {
  END_VOICE_SESSION: 'END_VOICE_SESSION',
  SUPPRESS_AUDIO: 'SUPPRESS_AUDIO',
  SUPPRESS_TRANSCRIPT: 'SUPPRESS_TRANSCRIPT',
  SET_PENDING_MESSAGE: 'SET_PENDING_MESSAGE',
};
