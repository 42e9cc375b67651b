/** Makes `/agent` of the agent's image, as a folder. */
import { chmod } from 'node:fs/promises';
import { pino } from 'pino';
import { makeRuntime } from '../../src/runtime/runtime.ts';

/** Returns the folder. `entry`: the agent's `main.ts`, or what stands in for it. */
export async function makeAgentFolder(folder: string, entry: string): Promise<string> {
  const runtime = await makeRuntime({ stateRoot: folder, entry, portableIn: '/agent', log: pino({ level: 'silent' }) });
  await chmod(folder, 0o755);
  return runtime;
}
