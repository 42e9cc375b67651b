import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { readClaim } from '../supervise/claim.ts';
import { isAlive } from '../supervise/processes.ts';

/** Longer than worker and service together may take to stop. */
const patienceMs = 45_000;

/** Stops what `run` or `up` started for this data folder; returns when it is gone. */
export async function down(context: Context): Promise<void> {
  const claim = readClaim(context.folder.supervisorFile);
  if (!claim) {
    context.out(`nothing runs (data folder ${context.folder.path})\n`);
    return;
  }
  try {
    process.kill(claim.pid, 'SIGTERM');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPERM') {
      throw new Failure(`process ${claim.pid} belongs to another user; stop it as that user`);
    }
  }
  const deadline = performance.now() + patienceMs;
  while (isAlive(claim)) {
    if (performance.now() > deadline) {
      // Its programs stop by themselves when it is gone: their input closes.
      process.kill(claim.pid, 'SIGKILL');
      throw new Failure(
        `process ${claim.pid} did not stop in ${patienceMs / 1000} s and was killed; see ${context.folder.logs}`,
      );
    }
    await sleep(25);
  }
  context.out('stopped\n');
}
