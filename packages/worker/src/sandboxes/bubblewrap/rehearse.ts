import { chown } from 'node:fs/promises';
import path from 'node:path';
import { openRehearsalService } from '../../runtime/rehearsal-service.ts';
import { agentCommand, agentEnvironment } from './agent-command.ts';
import { type BubblewrapGround, prepareSandbox } from './backend.ts';

const longestMs = 20_000;

/**
 * Runs the agent of `runtime` once with its compile cache writable, on a task that does nothing. Node writes the cache as it
 * exits, with what was compiled by then. Rejects where the agent does not come to a good end.
 */
export async function rehearseAgent(ground: BubblewrapGround, runtime: string, cacheInside: string): Promise<void> {
  const cache = path.join(runtime, 'agent/cache');
  const sandbox = await prepareSandbox(ground, {
    runtime,
    writableCache: { from: cache, to: cacheInside },
    relay: async (socketPath, uid) => {
      if (uid !== undefined) await chown(cache, uid, uid);
      return openRehearsalService(socketPath, uid);
    },
  });
  try {
    const id = '00000000-0000-7000-8000-000000000001';
    const env = { TASK_ID: id, WARP_SERVER_ROOT_URL: 'http://localhost', RUNYARD_RUN_TOKEN: 'rehearsal' };
    const args = [
      'agent',
      'run',
      '--task-id',
      id,
      '--sandboxed',
      '--server-root-url',
      'http://localhost',
      '--idle-on-complete',
      '0s',
    ];
    const running = sandbox.run(agentCommand(args), agentEnvironment(env));
    const tooLong = setTimeout(() => running.kill('kill'), longestMs);
    const end = await running.ended;
    clearTimeout(tooLong);
    if (end.exitCode !== 0) throw new Error(`exit code ${end.exitCode}: ${end.outputTail.trim().slice(-500)}`);
  } finally {
    await sandbox.dispose();
  }
}
