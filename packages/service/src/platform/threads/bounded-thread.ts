/**
 * Runs work on untrusted text in a separate thread. The thread does one piece of work after another, and each piece has a limit of
 * processor time.
 */
import { Worker } from 'node:worker_threads';
import { untilUsedUp } from './processor-limit.ts';
import { makeTurns, type TurnLimits } from './turns.ts';

export interface ThreadOptions<Out> {
  /** The module that runs in the thread. It sends one message when it is ready, and then one or more messages for each piece of work. */
  readonly module: URL;
  /** `workerData` of the module. */
  readonly data?: unknown;
  /**
   * Milliseconds of processor time that one piece of work may use. The start of the thread does not count. Processor time is measured,
   * and not the time that passes, so that the result is the same on a busy machine.
   */
  readonly limitMs: number;
  readonly waiting: TurnLimits;
  /** Returns whether a message ends a piece of work. */
  readonly isLast: (message: Out) => boolean;
}

/**
 * `too_slow`: the work used up its processor time, or the memory of the thread. `busy`: too many pieces of work wait, or the machine
 * gives the thread hardly any processor time.
 */
export type ThreadOutcome<Out> =
  | { readonly kind: 'done'; readonly message: Out }
  | { readonly kind: 'too_slow' | 'busy' };

export interface BoundedThread<In, Out> {
  /** Does one piece of work of a team. Teams with waiting work take turns. `onMessage` gets each message that the thread sends for this work. */
  run(teamId: string, work: In, onMessage?: (message: Out) => void): Promise<ThreadOutcome<Out>>;
  close(): Promise<void>;
}

const maxHeapMb = 256;

/** Makes a bounded thread. The thread is started only for the first piece of work. */
export function openBoundedThread<In, Out>(options: ThreadOptions<Out>): BoundedThread<In, Out> {
  const { module, data, limitMs, waiting, isLast } = options;
  let current: Worker | undefined;
  const turns = makeTurns(waiting);
  const pieces = new Set<Promise<unknown>>();

  const started = async (): Promise<Worker> => {
    if (current) return current;
    const worker = new Worker(module, {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
      // The environment variables of the service contain keys, which the thread does not need.
      env: {},
    });
    worker.unref();
    await new Promise<void>((resolve, reject) => {
      worker.once('message', () => resolve());
      worker.once('error', reject);
    });
    worker.on('error', () => {});
    current = worker;
    return worker;
  };

  const runNow = async (work: In, onMessage?: (message: Out) => void): Promise<ThreadOutcome<Out>> => {
    const worker = await started();
    const outcome = await new Promise<ThreadOutcome<Out>>((resolve) => {
      const stopped = new AbortController();
      const end = (result: ThreadOutcome<Out>): void => {
        stopped.abort();
        resolve(result);
      };
      void untilUsedUp(worker, limitMs, stopped.signal).then((kind) => kind !== 'stopped' && end({ kind }));
      worker.removeAllListeners('message');
      worker.removeAllListeners('exit');
      worker.on('message', (message: Out) => {
        onMessage?.(message);
        if (isLast(message)) end({ kind: 'done', message });
      });
      // The thread ends by itself only if the work has used up the memory of the thread.
      worker.once('exit', () => end({ kind: 'too_slow' }));
      worker.postMessage(work);
    });
    if (outcome.kind !== 'done') {
      current = undefined;
      await worker.terminate();
    }
    return outcome;
  };

  return {
    run: async (teamId, work, onMessage) => {
      const piece = turns(teamId, () => runNow(work, onMessage));
      pieces.add(piece);
      try {
        const outcome = await piece;
        return outcome === 'busy' ? { kind: 'busy' } : outcome;
      } finally {
        pieces.delete(piece);
      }
    },
    close: async () => {
      await Promise.allSettled(pieces);
      await current?.terminate();
      current = undefined;
    },
  };
}
