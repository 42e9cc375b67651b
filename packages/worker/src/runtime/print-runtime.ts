/** Makes the agent's runtime in the folder that the argument names, for agents of other workers, and prints its path. */
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
  // Standard output contains only the path.
  log: { info: () => {}, warn: (_, message) => process.stderr.write(`runyard-agent: ${message}\n`) },
});
process.stdout.write(`${runtime}\n`);
