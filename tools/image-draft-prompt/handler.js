import { ToolError, ErrorType } from '../_core/error-types.js';

const SIZES = { square: '1024x1024', landscape: '1792x1024', portrait: '1024x1792' };

/** Drafts prompt variants; no image is made. */
export async function execute({ args, context }) {
  const { idea, style = 'any', mood, orientation = 'square', avoid = [], variants = 3 } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot draft a prompt: the session has ended',
        retryable: false,
      },
    };
  }

  let drafted;
  try {
    drafted = await context.images.draft({ idea, style, mood, orientation, avoid, count: variants });
  } catch (error) {
    throw translate(error);
  }

  return {
    ok: true,
    data: {
      variants: distinct(drafted.variants)
        .slice(0, variants)
        .map((variant) => ({ prompt: variant.prompt, style: variant.style, size: SIZES[orientation] })),
    },
  };
}

function distinct(variants) {
  return [...new Map(variants.map((variant) => [variant.prompt, variant])).values()];
}

function translate(error) {
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, 'Drafting took too long', { retryable: true });
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The drafting service cannot be reached', { retryable: true });
    case 'REJECTED':
      return new ToolError(ErrorType.PERMANENT, 'The idea was rejected by the content rules');
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The idea cannot be drafted: ${error.message}`);
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, `Image generation is not configured on this server: ${error.message}`);
    default:
      return error;
  }
}
