import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { filesOf, supervisorsFolder } from '../../packages/worker/src/supervisor-client/files.ts';

/**
 * Returns the process that supervises a sandbox, or undefined if no agent was started in it. `state` is the folder of the
 * worker's sandboxes.
 */
export async function supervisorOf(state: string, sandbox: string): Promise<number | undefined> {
  const { record } = filesOf(path.join(supervisorsFolder(state), sandbox));
  const text = await readFile(record, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as { process: { pid: number } }).process.pid;
}
