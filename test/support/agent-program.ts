/**
 * Gives tests the agent program. Each test run makes one bundle of it, in the same way as for sandboxes, because the sources load
 * slowly.
 */
import path from 'node:path';
import { startFile } from '../../packages/worker/src/runtime/agent-program.ts';
import { bundleProgram, writeBundle } from '../../packages/worker/src/runtime/bundle.ts';
import { makeOnce } from './head-start.ts';

const source = path.resolve(import.meta.dirname, '../../packages/agent/src/main.ts');

/** Returns the file to start: the bundle or, with `TEST_SOURCES=1` in the environment, the source file, for stack traces with its lines. */
export async function agentProgram(): Promise<string> {
  if (process.env.TEST_SOURCES === '1') return source;
  const folder = await makeOnce('agent', async (making) => await writeBundle(await bundleProgram(source), making));
  return folder === undefined ? source : path.join(folder, startFile);
}
