import { mkdirSync } from 'node:fs';
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
  try {
    const stack = await startStack({ ...supervision, signal: stopping.signal });
    const programs = [...(supervision.service ? ['service'] : []), ...(supervision.worker ? ['worker'] : [])];
    taken.claim.announce(stack.origin, programs);
    supervision.onReady(stack);
    if ((await asked.promise) === 'drain') await stack.drain();
    await stack.stop();
  } finally {
    taken.claim.release();
    for (const signal of stopSignals) process.off(signal, onSignal);
  }
}
