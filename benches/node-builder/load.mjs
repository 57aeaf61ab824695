// node load.mjs eager|lazy ARTIFACT SINCE TOOL ARGS …: a runtime's start-up as one would write it on Node: reads the
// artifact that Toolwright built, compiles Ajv validators and imports handlers, for all tools or on first use; then
// calls the named tools. SINCE is the monotonic clock's nanoseconds before this process was started. It checks no
// digests and isolates nothing.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const [when, artifact, since, ...calls] = process.argv.slice(2);
const base = dirname(resolve(artifact));
const ajv = new Ajv2020({ allErrors: true, useDefaults: true, coerceTypes: false, removeAdditional: false, strict: true });
addFormats(ajv);

async function prepare(tool) {
  tool.validate ??= ajv.compile(tool.jsonSchema);
  tool.execute ??= (await import(pathToFileURL(resolve(base, tool.handlerPath)).href)).execute;
}

async function call(name, args) {
  const tool = tools.get(name);
  await prepare(tool);
  if (!tool.validate(args)) throw new Error(JSON.stringify(tool.validate.errors));
  const result = await tool.execute({ args, context: { session: { isActive: true }, mode: 'text' } });
  if (!result.ok) throw new Error(JSON.stringify(result));
}

function memory(field) {
  const line = readFileSync('/proc/self/status', 'utf-8').split('\n').find((text) => text.startsWith(`${field}:`));
  return parseInt(line.slice(field.length + 1), 10) / 1024;
}

const tools = new Map(JSON.parse(readFileSync(artifact, 'utf-8')).tools.map((tool) => [tool.toolId, tool]));
if (when === 'eager') for (const tool of tools.values()) await prepare(tool);
const cpu = process.cpuUsage();
const sample = {
  ready_cpu_ms: (cpu.user + cpu.system) / 1000,
  ready_wall_ms: Number(process.hrtime.bigint() - BigInt(since)) / 1e6,
  ready_rss_mb: memory('VmRSS'),
};
for (const [at, key] of ['first_call_ms', 'next_call_ms'].entries()) {
  const started = performance.now();
  await call(calls[2 * at], JSON.parse(calls[2 * at + 1]));
  sample[key] = performance.now() - started;
}
sample.peak_rss_mb = memory('VmHWM');
console.log(JSON.stringify(sample));
