import { ToolError, ErrorType } from '../_core/error-types.js';

/** Generates images and returns where they are stored. Confirmation, where needed, has been obtained before. */
export async function execute({ args, context }) {
  const { prompt, size = '1024x1024', count = 1, quality = 'standard' } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot generate images: the session has ended',
        retryable: false,
      },
    };
  }

  context.progress(0, count === 1 ? 'Generating one image' : `Generating ${count} images`);

  let result;
  try {
    result = await context.images.generate({ prompt, size, count, quality, executionId: context.executionId });
  } catch (error) {
    throw translate(error);
  }
  if (result.images.length === 0) {
    throw new ToolError(ErrorType.TRANSIENT, 'The image service returned no image', {
      retryable: true,
      partialSideEffects: true,
    });
  }

  context.audit.log('images_generated', { count: result.images.length, size, quality });
  return { ok: true, data: { images: result.images.map(stored) } };
}

function stored(image) {
  return {
    url: image.url,
    width: image.width,
    height: image.height,
    mime_type: image.mimeType,
    revised_prompt: image.revisedPrompt ?? null,
  };
}

/** After a timeout or an unusable response, images may have been generated and charged. */
function translate(error) {
  const noResponse = { retryable: true, partialSideEffects: true, idempotencyRequired: true };
  switch (error?.code) {
    case 'TIMEOUT':
      return new ToolError(ErrorType.TRANSIENT, `The image service gave no image: ${error.message}`, noResponse);
    case 'UNREACHABLE':
      return new ToolError(ErrorType.TRANSIENT, 'The image service cannot be reached', { retryable: true });
    case 'REJECTED':
      return new ToolError(ErrorType.PERMANENT, 'The prompt was rejected by the content rules');
    case 'INVALID_ARGUMENT':
      return new ToolError(ErrorType.VALIDATION, `The image service rejected the request: ${error.message}`);
    case 'FORBIDDEN':
      return new ToolError(ErrorType.AUTH, 'The image service rejects the credentials of this server');
    case 'NOT_CONFIGURED':
      return new ToolError(ErrorType.PERMANENT, `Image generation is not configured on this server: ${error.message}`);
    default:
      return error;
  }
}
