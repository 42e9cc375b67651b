/**
 * Program that makes the runtime of the agent in the folder that its argument names, and prints the path of the runtime. Other workers
 * use this runtime for their agents.
 */
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { makeRuntime } from './runtime.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('Name the folder for the runtime.');
await mkdir(folder, { recursive: true, mode: 0o700 });
const runtime = await makeRuntime({
  stateRoot: folder,
  entry: fileURLToPath(new URL('../../../agent/src/main.ts', import.meta.url)),
  shared: true,
  // Warnings go to standard error, because standard output must contain only the path.
  log: { info: () => {}, warn: (_, message) => process.stderr.write(`runyard-agent: ${message}\n`) },
});
process.stdout.write(`${runtime}\n`);
