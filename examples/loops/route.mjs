// A chat route in the manner of Next.js (`app/api/chat/route.js`) on npm `ai`; Toolwright declares the tools and runs the
// calls. `POST` answers a message of `useChat`; `GET` lists the questions of a conversation; `PUT` answers one.
//
//   npm install ai @ai-sdk/openai-compatible
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { convertToModelMessages, dynamicTool, isStepCount, jsonSchema, streamText } from 'ai';

const url = process.env.TOOLWRIGHT_URL ?? 'http://127.0.0.1:7300';
const key = process.env.TOOLWRIGHT_KEY;
const provider = createOpenAICompatible({
  name: 'model',
  baseURL: process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
  apiKey: process.env.OPENAI_API_KEY,
});

/// By the chat's id: the session, the open questions with their tokens, and the results of approved calls, which the model
/// has not read yet. A server with several processes keeps them in its database.
const chats = new Map();

async function toolwright(method, path, body) {
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

async function chatOf(id) {
  if (!chats.has(id)) {
    const { sessionId } = await toolwright('POST', '/v1/sessions', { mode: 'text' });
    chats.set(id, { sessionId, questions: new Map(), results: [] });
  }
  return chats.get(id);
}

/// The tools of the session, each run by Toolwright. The model reads its result, never a confirmation token.
async function toolsOf(chat) {
  const view = await toolwright('GET', `/v1/tools?provider=openai-chat&sessionId=${chat.sessionId}`);
  const tool = ({ function: { name, description, parameters } }) => {
    const execute = async (input, { toolCallId }) => {
      const message = { tool_calls: [{ id: toolCallId, function: { name, arguments: input } }] };
      const path = `/v1/sessions/${chat.sessionId}/messages?provider=openai-chat`;
      const { messages, questions } = await toolwright('POST', path, message);
      for (const question of questions) chat.questions.set(question.confirmationId, question);
      return JSON.parse(messages[0].content);
    };
    return [name, dynamicTool({ description, inputSchema: jsonSchema(parameters), execute })];
  };
  return Object.fromEntries(view.tools.map(tool));
}

export async function POST(request) {
  const { id, messages } = await request.json();
  const chat = await chatOf(id);
  await toolwright('POST', `/v1/sessions/${chat.sessionId}/turn`, {});
  const { prompt } = await toolwright('GET', `/v1/prompt?sessionId=${chat.sessionId}`);
  const results = chat.results.splice(0).map((result) => `\n\nSince then the user has answered: ${JSON.stringify(result)}`);
  const result = streamText({
    model: provider(process.env.MODEL ?? 'gpt-5'),
    instructions: prompt + results.join(''),
    messages: await convertToModelMessages(messages),
    tools: await toolsOf(chat),
    stopWhen: isStepCount(8),
  });
  return result.toUIMessageStreamResponse();
}

/// The open questions, for the page: what would be done, and until when it can be answered.
export async function GET(request) {
  const chat = await chatOf(new URL(request.url).searchParams.get('id'));
  const questions = [...chat.questions.values()];
  return Response.json(questions.map(({ token, ...question }) => question));
}

/// `{id, confirmationId, approved}`: the call runs, or is refused, and the model reads of it in the next turn.
export async function PUT(request) {
  const { id, confirmationId, approved } = await request.json();
  const chat = await chatOf(id);
  const question = chat.questions.get(confirmationId);
  if (!question) return Response.json({ detail: 'There is no such question.' }, { status: 404 });
  const path = `/v1/confirmations/${question.token}/${approved ? 'approve' : 'reject'}`;
  const envelope = await toolwright('POST', path, {});
  chat.questions.delete(confirmationId);
  chat.results.push({ tool: question.tool, args: question.args, approved, ok: envelope.ok, data: envelope.data });
  return Response.json(envelope);
}
