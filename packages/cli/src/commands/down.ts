import { setTimeout as sleep } from 'node:timers/promises';
import { stateOf } from '@runyard/contract/process-identity';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { readClaim } from '../supervise/claim.ts';

/** Longest wait. Worker and service together stop faster. */
const patienceMs = 45_000;

/**
 * Stops the programs that `run` or `up` started for this data folder, and returns when they are gone. A worker that was started
 * alone finishes its runs first, however long that takes, unless `now` is set.
 */
export async function down(context: Context, options: { readonly now?: true }): Promise<void> {
  const claim = readClaim(context.folder.supervisorFile);
  if (!claim) {
    context.out(`nothing runs (data folder ${context.folder.path})\n`);
    return;
  }
  if (stateOf(claim) === 'elsewhere')
    throw new Failure('it runs in another container, which shares this data folder; stop it there');
  const drains = !options.now && claim.programs !== undefined && !claim.programs.includes('service');
  send(claim.pid, options.now ? 'SIGINT' : 'SIGTERM');
  if (drains) context.report('the worker finishes the runs that it has; bin/runyard down --now ends them');
  const deadline = drains ? Number.POSITIVE_INFINITY : performance.now() + patienceMs;
  while (stateOf(claim) === 'alive') {
    if (performance.now() > deadline) {
      // Its programs stop by themselves then, because their input closes.
      process.kill(claim.pid, 'SIGKILL');
      throw new Failure(
        `process ${claim.pid} did not stop in ${patienceMs / 1000} s and was killed; see ${context.folder.logs}`,
      );
    }
    await sleep(25);
  }
  context.out('stopped\n');
}

/** Sends the signal. Ignores a process that is already gone. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPERM')
      throw new Failure(`process ${pid} belongs to another user; stop it as that user`);
  }
}
