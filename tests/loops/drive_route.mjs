// Drives the route as `useChat` and a page would: sends a message, answers the question, sends another.
import assert from 'node:assert/strict';
import { GET, POST, PUT } from './route.mjs';

const id = 'chat-1';
const messages = [];

async function say(text) {
  messages.push({ id: `m${messages.length}`, role: 'user', parts: [{ type: 'text', text }] });
  const response = await POST(new Request('http://page/api/chat', { method: 'POST', body: JSON.stringify({ id, messages }) }));
  assert.equal(response.status, 200);
  const stream = await response.text();
  assert.ok(!stream.includes('"type":"error"'), stream);
  const chunks = stream.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
  const said = chunks.filter((chunk) => chunk.type === 'text-delta').map((chunk) => chunk.delta).join('');
  messages.push({ id: `m${messages.length}`, role: 'assistant', parts: [{ type: 'text', text: said }] });
  return { said, stream };
}

const first = await say(process.argv[2]);
assert.match(first.said, /needs your approval/);
assert.match(first.stream, /"total":90/);
const questions = await (await GET(new Request(`http://page/api/chat?id=${id}`))).json();
assert.equal(questions.length, 1);
assert.ok(!JSON.stringify(questions).includes('token') && !first.stream.includes('confirmation_token'));
const answer = (confirmationId) =>
  PUT(new Request('http://page/api/chat', { method: 'PUT', body: JSON.stringify({ id, confirmationId, approved: true }) }));
const envelope = await (await answer(questions[0].confirmationId)).json();
assert.deepEqual([envelope.ok, envelope.data], [true, { refunded: true }]);
assert.equal((await answer(questions[0].confirmationId)).status, 404);
const second = await say('I have approved it.');
assert.match(second.said, /Order 7 is refunded/);
console.log('ai: streams, calls, asks, answers');
