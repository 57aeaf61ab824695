// Runs all browser tests of this directory, or those of the files that the arguments name: `run.mjs chat voice`.

import fs from 'node:fs';
import { after } from 'node:test';

import { closeBrowser, stopAll } from './support.mjs';

const wanted = process.argv.slice(2);
const files = fs.readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('_test.mjs'));
const chosen = files.filter((name) => wanted.length === 0 || wanted.includes(name.replace('_test.mjs', '')));
if (chosen.length === 0) throw new Error(`no test file is named ${wanted.join(' or ')}: there are ${files.join(', ')}`);
after(async () => {
  await closeBrowser();
  stopAll();
});
process.on('exit', stopAll);
for (const name of chosen) await import(`./${name}`);
