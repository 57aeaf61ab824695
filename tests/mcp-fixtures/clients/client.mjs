// The official TypeScript client: lists, calls and confirms, over HTTP and stdio.
// client.mjs URL TOOLWRIGHT ARGUMENT...
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, command, ...args] = process.argv.slice(2);

async function check(name, transport) {
  const client = new Client({ name: 'check', version: '1.0.0' }, { capabilities: { elicitation: {} } });
  const elicitations = [];
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    elicitations.push(params.message);
    return { action: 'accept', content: {} };
  });
  await client.connect(transport);
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ['count_words', 'send_note', 'reg_describe']) assert(names.includes(name), names.join());
  const counted = await client.callTool({ name: 'count_words', arguments: { text: 'one two three' } });
  assert.deepEqual(counted.structuredContent, { words: 3, characters: 13 });
  const wrong = await client.callTool({ name: 'count_words', arguments: { txt: 'one' } });
  assert(wrong.isError && wrong.content[0].text.includes('VALIDATION'));
  const sent = await client.callTool({ name: 'send_note', arguments: { text: 'Bring the contract.' } });
  assert.deepEqual(sent.structuredContent, { sent: true });
  assert.equal(elicitations.length, 1);
  const document = await client.readResource({ uri: 'tool://count_words/doc' });
  assert(document.contents[0].text.includes('## Summary'));
  assert.deepEqual((await client.listPrompts()).prompts.map((prompt) => prompt.name), ['text', 'voice']);
  console.log(`typescript ${name}: lists, calls, confirms`);
  await client.close();
}

await check('http', new StreamableHTTPClientTransport(new URL(url)));
await check('stdio', new StdioClientTransport({ command, args }));
