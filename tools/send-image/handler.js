import { ToolError, ErrorType } from '../_core/error-types.js';

/** Shows an image in the client. */
export async function execute({ args, context }) {
  const { image_url, caption, alt_text } = args;

  if (!context.session.isActive) {
    return {
      ok: false,
      error: {
        type: ErrorType.SESSION_INACTIVE,
        message: 'Cannot send the image: the session has ended',
        retryable: false,
      },
    };
  }

  try {
    await context.messaging.send({ type: 'image', url: image_url, caption: caption ?? null, altText: alt_text ?? null });
  } catch {
    throw new ToolError(ErrorType.TRANSIENT, 'The image could not be sent to the client', {
      retryable: true,
      partialSideEffects: false,
    });
  }

  context.audit.log('image_sent', { url: image_url });
  return { ok: true, data: { sent: true, image_url } };
}
