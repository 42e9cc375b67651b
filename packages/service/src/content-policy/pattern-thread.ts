/** The thread that searches for patterns, one check after the other, each within a limit of processor time. */
import { Worker } from 'node:worker_threads';
import type { PolicyRule, TextKind } from './policy-file.ts';
import { untilUsedUp } from './processor-limit.ts';

export interface PolicyText {
  readonly kind: TextKind;
  readonly text: string;
}

export interface PatternThreadData {
  readonly rules: readonly Pick<PolicyRule, 'pattern' | 'applies_to'>[];
}
export interface ToPatternThread {
  readonly texts: readonly PolicyText[];
}
export type FromPatternThread =
  | { readonly kind: 'ready' | 'none' }
  /** `rule`: its index. */
  | { readonly kind: 'searching' | 'found'; readonly rule: number };

/**
 * `rule`: index of the rule. `too_slow`: the search for it took too much processor time. `busy`: too many checks wait, or the machine
 * gives the thread no processor time.
 */
export type PatternResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'found' | 'too_slow'; readonly rule: number };

export interface PatternThread {
  search(texts: readonly PolicyText[]): Promise<PatternResult>;
  close(): Promise<void>;
}

/** Checks that may wait for the thread. */
const maxWaiting = 500;
const maxHeapMb = 256;

/**
 * Starts the thread at the first search. `limitMs` is the processor time for one check, without the start of the thread: how busy the
 * machine is decides about no text.
 */
export function openPatternThread(rules: PatternThreadData['rules'], limitMs: number): PatternThread {
  let current: Worker | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  const started = async (): Promise<Worker> => {
    if (current) return current;
    const data: PatternThreadData = { rules: rules.map(({ pattern, applies_to }) => ({ pattern, applies_to })) };
    const worker = new Worker(new URL('./pattern-worker.ts', import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
      // The thread does not need the keys of the service.
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

  const searchNow = async (texts: readonly PolicyText[]): Promise<PatternResult> => {
    const worker = await started();
    let rule = 0;
    const result = await new Promise<PatternResult>((resolve) => {
      const stopped = new AbortController();
      const end = (outcome: PatternResult): void => {
        stopped.abort();
        resolve(outcome);
      };
      void untilUsedUp(worker, limitMs, stopped.signal).then((kind) => kind !== 'stopped' && end({ kind, rule }));
      worker.removeAllListeners('message');
      worker.removeAllListeners('exit');
      worker.on('message', (message: FromPatternThread) => {
        if (message.kind === 'searching') rule = message.rule;
        else if (message.kind === 'found') end({ kind: 'found', rule: message.rule });
        else if (message.kind === 'none') end({ kind: 'none' });
      });
      // The search used up the memory of the thread.
      worker.once('exit', () => end({ kind: 'too_slow', rule }));
      worker.postMessage({ texts } satisfies ToPatternThread);
    });
    if (result.kind === 'too_slow' || result.kind === 'busy') {
      current = undefined;
      await worker.terminate();
    }
    return result;
  };

  return {
    search: async (texts) => {
      if (waiting >= maxWaiting) return { kind: 'busy' };
      waiting += 1;
      const before = last;
      const mine = (async () => {
        await before.catch(() => {});
        return await searchNow(texts);
      })();
      last = mine;
      try {
        return await mine;
      } finally {
        waiting -= 1;
      }
    },
    close: async () => {
      await last.catch(() => {});
      await current?.terminate();
      current = undefined;
    },
  };
}
