/**
 * Gives tests the agent program. Each test run makes one bundle of it, in the same way as for sandboxes, because the sources load
 * slowly, and a bundle takes seconds of processor time.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startFile } from '../../packages/worker/src/runtime/agent-program.ts';
import { type Bundle, bundleProgram, writeBundle } from '../../packages/worker/src/runtime/bundle.ts';
import { makeOnce } from './head-start.ts';

/** Entry file of the agent's sources. */
export const agentSource = path.resolve(import.meta.dirname, '../../packages/agent/src/main.ts');
const bundleFile = 'bundle.json';

/** Bundles a program, and stores the bundle in a file as JSON. */
export async function keepBundle(file: string, entry: string): Promise<Bundle> {
  const { files, inputs } = await bundleProgram(entry);
  const texts = files.map(({ name, bytes }) => ({ name, text: Buffer.from(bytes).toString() }));
  await writeFile(file, JSON.stringify({ files: texts, inputs }));
  return { files, inputs };
}

const makeAgent = () =>
  makeOnce('agent', async (making) => {
    await mkdir(making);
    await writeBundle(await keepBundle(path.join(making, bundleFile), agentSource), making);
  });

/** Returns the file to start: the bundle or, with `TEST_SOURCES=1` in the environment, the source file, for stack traces with its lines. */
export async function agentProgram(): Promise<string> {
  const folder = process.env.TEST_SOURCES === '1' ? undefined : await makeAgent();
  return folder === undefined ? agentSource : path.join(folder, startFile);
}

/** Returns the stored bundle of the agent as JSON: the names and texts of its files, and the paths of its sources. */
export async function agentBundle(): Promise<string> {
  const folder = await makeAgent();
  if (folder === undefined) throw new Error('only a test run stores the bundle of the agent');
  return await readFile(path.join(folder, bundleFile), 'utf8');
}
