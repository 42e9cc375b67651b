import { statSync } from 'node:fs';
import { type Claim, drainSignal, takeClaim } from '../data-folder/claim.ts';
import { Failure } from '../exits/failure.ts';
import { makeFolders } from './make-folders.ts';
import { type Stack, type StackStart, startStack } from './stack.ts';

/** Programs to start, and how. */
export interface Supervise extends Omit<StackStart, 'signal'> {
  readonly mode: Claim['mode'];
  /** Called once, when all programs have started. */
  readonly onReady: (stack: Stack) => void;
}

/** Another process supervises this data folder. */
export class AlreadyRunning extends Failure {
  readonly holder: Claim;

  constructor(holder: Claim) {
    super(
      `runyard is running already (process ${holder.pid}${holder.origin ? `, ${holder.origin}` : ', starting'}). Stop it with: bin/runyard down`,
    );
    this.holder = holder;
  }
}

const sentences = {
  draining: 'finishing the runs it has',
  leaving: 'leaving the runs to the next worker of this data folder',
  stopping: 'stopping',
} as const;

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', drainSignal] as const;

/**
 * Starts the programs and keeps them running until a signal arrives. Resolves when all programs have ended. SIGUSR2 lets the worker finish
 * its runs first. If only a worker runs, SIGTERM leaves its sandboxes to the next worker. Another signal while the worker finishes its runs
 * or leaves its sandboxes stops the programs without waiting. After one more signal, this process ends at once. The programs then stop by
 * themselves, because they were already asked to stop.
 * @throws AlreadyRunning if another process supervises this data folder; Failure if a program does not start
 */
export async function supervise(supervision: Supervise): Promise<void> {
  const { folder, report } = supervision;
  makeFolders(folder);
  const ownClaim = takeClaim(folder.supervisorFile, supervision.mode);
  if (!ownClaim.ok) throw new AlreadyRunning(ownClaim.holder);

  const stopping = new AbortController();
  const stopRequest = Promise.withResolvers<'stop' | 'drain' | 'leave'>();
  const askedToStop = Promise.withResolvers<void>();
  let state: 'running' | 'draining' | 'leaving' | 'stopping' = 'running';
  const onSignal = (signal: NodeJS.Signals) => {
    if (state === 'stopping') {
      if (signal === drainSignal) return;
      ownClaim.claim.release();
      process.exit(130);
    }
    // A worker that runs alone belongs to a fleet: SIGTERM means an upgrade or the end of its container.
    const leave = state === 'running' && !supervision.service && signal === 'SIGTERM';
    const drain = signal === drainSignal || (leave && supervision.settings.RUNYARD_ADOPT_SECONDS === 0);
    if (drain && state === 'draining') return;
    const how = drain ? 'draining' : leave ? 'leaving' : 'stopping';
    report(`${signal === 'SIGINT' ? 'Ctrl-C' : signal}: ${sentences[how]}`);
    state = how;
    stopping.abort();
    stopRequest.resolve(drain ? 'drain' : leave ? 'leave' : 'stop');
    if (!drain && !leave) askedToStop.resolve();
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  const unwatch = onceRemoved(folder.path, () => {
    report(`the data folder ${folder.path} was removed: stopping`);
    state = 'stopping';
    stopping.abort();
    stopRequest.resolve('stop');
    askedToStop.resolve();
  });
  keepWithoutOutput();
  try {
    const stack = await startStack({ ...supervision, signal: stopping.signal });
    const programs = [...(supervision.service ? ['service'] : []), ...(supervision.worker ? ['worker'] : [])];
    ownClaim.claim.announce(stack.origin, programs);
    try {
      supervision.onReady(stack);
    } catch (error) {
      await stack.stop();
      throw error;
    }
    const how = await stopRequest.promise;
    if (how === 'drain') await Promise.race([stack.drain(), askedToStop.promise]);
    const stopped = askedToStop.promise.then(() => false);
    const leaves = how === 'leave' && (await Promise.race([stack.leave().then(() => true), stopped]));
    state = 'stopping';
    // Stop the service last, because sandboxes report their end to it.
    await stack.stop(leaves ? undefined : () => endLeftSandboxes(supervision));
  } finally {
    unwatch();
    ownClaim.claim.release();
    for (const signal of stopSignals) process.off(signal, onSignal);
  }
}

/** Ends the sandboxes of a worker that was killed and has not been started again yet. */
async function endLeftSandboxes({ worker, folder, report }: Supervise): Promise<void> {
  if (!worker) return;
  try {
    const { endSandboxes } = await import('@runyard/worker/end-sandboxes');
    await endSandboxes(folder.path);
  } catch (error) {
    report(
      `sandboxes of a killed worker may continue for RUNYARD_ADOPT_SECONDS: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** Ignores errors of this process's output, such as a full disk or a closed pipe, because they must not end the programs. */
function keepWithoutOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {});
}

const folderCheckMs = 2_000;

/** Calls `then` once when the folder was removed or replaced. Returns a function that stops the check. */
function onceRemoved(folder: string, then: () => void): () => void {
  const { dev, ino } = statSync(folder);
  const timer = setInterval(() => {
    if (isStill(folder, dev, ino)) return;
    clearInterval(timer);
    then();
  }, folderCheckMs);
  return () => clearInterval(timer);
}

function isStill(folder: string, dev: number, ino: number): boolean {
  try {
    const now = statSync(folder);
    return now.dev === dev && now.ino === ino;
  } catch (error) {
    // Only ENOENT means that the folder is gone. Another error may come from a disk that fails for a moment.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
