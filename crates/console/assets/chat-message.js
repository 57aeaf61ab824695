// The AI SDK's UI message stream, read into messages: `{ id, role, parts }`, as `GET /api/chat/{id}/messages` has them.

/** The chunks of a stream, in order. Ends without an error when the stream says that it is complete. */
export async function* readChunks(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new TypeError('The stream ended early.');
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const data = line.slice(5).trim();
      if (data === '[DONE]') return;
      yield JSON.parse(data);
    }
  }
}

export const toolName = (part) => part.type.slice('tool-'.length);
export const isTool = (part) => part.type.startsWith('tool-');
/** A call that runs in the background: its output is its task, until the result takes that place. */
export const isOpenTask = (part) => isTool(part) && part.state === 'output-available'
  && typeof part.output?.task?.taskId === 'string' && typeof part.output?.message === 'string';
export const isOpenApproval = (part) => isTool(part) && part.state === 'approval-requested';

/** What the message says, without calls and reasoning. */
export function textOf(message) {
  return message.parts.filter((part) => part.type === 'text').map((part) => part.text).join('\n\n');
}

/** Adds a chunk to the message. Returns what ends the stream: `{ error }`, `{ aborted }`, `{ finish }`. */
export function applyChunk(message, chunk) {
  const { parts } = message;
  const tool = () => parts.findLast((part) => isTool(part) && part.toolCallId === chunk.toolCallId);
  const update = (part, changes) => part && Object.assign(part, changes);
  switch (chunk.type) {
    case 'start-step': parts.push({ type: 'step-start' }); break;
    case 'reset-step': dropStep(parts); break;
    case 'text-start':
    case 'reasoning-start':
      parts.push({ type: chunk.type.split('-')[0], text: '', state: 'streaming', streamId: chunk.id });
      break;
    case 'text-delta':
    case 'reasoning-delta':
      update(openText(parts, chunk.id), { text: openText(parts, chunk.id)?.text + chunk.delta });
      break;
    case 'text-end':
    case 'reasoning-end': update(openText(parts, chunk.id), { state: 'done' }); break;
    case 'tool-input-available': addTool(parts, tool(), chunk); break;
    case 'tool-approval-request':
      update(tool(), { state: 'approval-requested',
        approval: { id: chunk.approvalId, descriptor: chunk.approvalDescriptor } });
      break;
    case 'tool-approval-response': decide(parts, chunk); break;
    case 'tool-output-available':
      update(tool(), { state: 'output-available', output: chunk.output, durationMs: chunk.durationMs });
      break;
    case 'tool-output-error':
      update(tool(), { state: 'output-error', errorText: chunk.errorText, durationMs: chunk.durationMs });
      break;
    case 'tool-output-denied': update(tool(), { state: 'output-denied' }); break;
    case 'error': return { error: chunk.errorText };
    case 'abort': return { aborted: true };
    case 'finish': return { finish: chunk.finishReason, usage: chunk.messageMetadata?.usage };
    default:
  }
  return null;
}

function openText(parts, id) {
  return parts.findLast((part) => part.streamId === id && part.state === 'streaming');
}

function addTool(parts, known, { toolName: name, toolCallId, input }) {
  if (!known) parts.push({ type: `tool-${name}`, toolCallId, state: 'input-available', input });
}

function decide(parts, { approvalId, approved, reason }) {
  const part = parts.findLast((other) => other.approval?.id === approvalId);
  if (!part) return;
  Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, approved, reason } });
}

/** A step that a crash has interrupted is repeated: what it said does not count. */
function dropStep(parts) {
  const begin = parts.findLastIndex((part) => part.type === 'step-start');
  parts.splice(begin + 1, parts.length, ...parts.slice(begin + 1).filter(isTool));
}
