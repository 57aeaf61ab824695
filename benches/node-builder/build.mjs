// node build.mjs TOOLS_DIR OUT: the tool directories into one JSON file, with Ajv's strict checks, as one would write
// it on Node. It checks less than Toolwright does (sections by substring, handler by regular expression, no examples).
import { readdirSync, readFileSync, writeFileSync, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createHash } from 'node:crypto';
import { execSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const [toolsDir, out] = [resolve(process.argv[2]), process.argv[3]];
const ajv = new Ajv2020({ allErrors: true, useDefaults: true, coerceTypes: false, removeAdditional: false, strict: true });
addFormats(ajv);

const SECTIONS = ['Summary', 'Preconditions', 'Postconditions', 'Invariants', 'Failure Modes', 'Examples', 'Common Mistakes'];
const FIELDS = ['toolId', 'version', 'description', 'category', 'sideEffects', 'idempotent', 'requiresConfirmation', 'allowedModes', 'latencyBudgetMs', 'parameters'];
const sha = (text) => createHash('sha256').update(text).digest('hex');

function read(path, name) {
  if (!existsSync(path)) throw new Error(`Missing ${name}`);
  return readFileSync(path, 'utf-8');
}

function checkFields(schema, dir) {
  for (const field of FIELDS) if (schema[field] === undefined) throw new Error(`Missing required field: ${field}`);
  if (!['retrieval', 'action', 'utility'].includes(schema.category)) throw new Error('Invalid category');
  if (!['none', 'read_only', 'writes'].includes(schema.sideEffects)) throw new Error('Invalid sideEffects');
  if (!Array.isArray(schema.allowedModes) || schema.allowedModes.length === 0) throw new Error('Invalid allowedModes');
  if (!(schema.latencyBudgetMs > 0)) throw new Error('Invalid latencyBudgetMs');
  if (schema.parameters.type !== 'object' || schema.parameters.additionalProperties !== false) throw new Error('Invalid parameters');
  if (schema.category === 'retrieval' && (schema.sideEffects === 'writes' || !schema.idempotent)) throw new Error('Retrieval must not write');
  if (schema.toolId !== dir.replaceAll('-', '_')) throw new Error('toolId does not match the directory');
}

function buildTool(dir) {
  const path = join(toolsDir, dir);
  const schema = JSON.parse(read(join(path, 'schema.json'), 'schema.json'));
  checkFields(schema, dir);
  ajv.compile(schema.parameters);
  const summary = read(join(path, 'doc_summary.md'), 'doc_summary.md').trim();
  if (summary.length > 250) throw new Error('doc_summary.md too long');
  const documentation = read(join(path, 'doc.md'), 'doc.md');
  for (const section of SECTIONS) if (!documentation.includes(`## ${section}`)) throw new Error(`Missing section: ${section}`);
  const handler = join(path, 'handler.js');
  if (!/export\s+(async\s+)?(function|const|let)\s+execute\b/.test(read(handler, 'handler.js'))) throw new Error('no execute');
  const { parameters, ...fields } = schema;
  return { ...fields, jsonSchema: parameters, summary, documentation, handlerPath: pathToFileURL(handler).href };
}

const dirs = readdirSync(toolsDir, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !/^[._]/.test(entry.name))
  .map((entry) => entry.name)
  .sort();
const tools = dirs.map(buildTool);
const content = tools.map((t) => `${t.toolId}:${t.version}:${sha(JSON.stringify(t.jsonSchema))}:${sha(t.summary)}:${sha(t.documentation)}`);
let gitCommit = null;
try {
  gitCommit = execSync('git rev-parse --short HEAD', { cwd: toolsDir, encoding: 'utf-8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
} catch {}
const registry = { version: `1.0.${sha(content.join('|')).slice(0, 8)}`, gitCommit, buildTimestamp: new Date().toISOString(), tools };
writeFileSync(out, JSON.stringify(registry, null, 2));
console.log(`built ${registry.version} tools=${tools.length}`);
