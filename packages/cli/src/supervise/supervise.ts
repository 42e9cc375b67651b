import { mkdirSync, statSync } from 'node:fs';
import { Failure } from '../failure.ts';
import { type Claim, takeClaim } from './claim.ts';
import { type Stack, type StackStart, startStack } from './stack.ts';

/** What is started, and how. */
export interface Supervise extends Omit<StackStart, 'signal'> {
  readonly mode: Claim['mode'];
  /** Called once, when everything is started. */
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

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Starts the programs and keeps them running until a signal says stop; returns when all of them are gone.
 * A second signal ends this process at once; the programs then stop by themselves, because their input closes.
 * @throws AlreadyRunning where another process has this data folder; Failure where something does not start
 */
export async function supervise(supervision: Supervise): Promise<void> {
  const { folder, report } = supervision;
  mkdirSync(folder.path, { recursive: true, mode: 0o700 });
  mkdirSync(folder.logs, { recursive: true, mode: 0o700 });
  const taken = takeClaim(folder.supervisorFile, supervision.mode);
  if (!taken.ok) throw new AlreadyRunning(taken.holder);

  const stopping = new AbortController();
  const asked = Promise.withResolvers<'stop' | 'drain'>();
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) {
      taken.claim.release();
      process.exit(130);
    }
    // A worker alone belongs to a fleet: SIGTERM lets it finish what it has, as a rolling update expects.
    const drain = !supervision.service && signal === 'SIGTERM';
    report(`${signal === 'SIGINT' ? 'Ctrl-C' : signal}: ${drain ? 'finishing the runs it has' : 'stopping'}`);
    stopping.abort();
    asked.resolve(drain ? 'drain' : 'stop');
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  const unwatch = onceRemoved(folder.path, () => {
    report(`the data folder ${folder.path} was removed: stopping`);
    stopping.abort();
    asked.resolve('stop');
  });
  keepWithoutOutput();
  try {
    const stack = await startStack({ ...supervision, signal: stopping.signal });
    const programs = [...(supervision.service ? ['service'] : []), ...(supervision.worker ? ['worker'] : [])];
    taken.claim.announce(stack.origin, programs);
    supervision.onReady(stack);
    if ((await asked.promise) === 'drain') await stack.drain();
    await stack.stop();
  } finally {
    unwatch();
    taken.claim.release();
    for (const signal of stopSignals) process.off(signal, onSignal);
  }
}

/** A full disk below our output, or a reader of it that went away, must not end what we keep running. */
function keepWithoutOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {});
}

const folderCheckMs = 2_000;

/** Calls `then` once when the folder is gone, or another one has its name. Returns what ends the watching. */
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
    // A disk that fails for a moment has not lost the folder.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
