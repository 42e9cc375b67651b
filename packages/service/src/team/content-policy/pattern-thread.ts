/** The thread that searches for patterns, one check after the other, each within a limit of processor time. */
import { Worker } from 'node:worker_threads';
import type { PolicyRule, TextKind } from './policy-file.ts';
import { untilUsedUp } from './processor-limit.ts';
import { makeTurns } from './turns.ts';

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
  /** Searches texts of a team, after those that wait; teams take turns. */
  search(teamId: string, texts: readonly PolicyText[]): Promise<PatternResult>;
  close(): Promise<void>;
}

/** Checks that may wait for the thread. */
const waitingLimits = { waiting: 500, waitingPerTeam: 50 };
const maxHeapMb = 256;

/**
 * Starts the thread at the first search. `limitMs` is the processor time for one check, without the start of the thread: how busy the
 * machine is decides about no text.
 */
export function openPatternThread(rules: PatternThreadData['rules'], limitMs: number): PatternThread {
  let current: Worker | undefined;
  const turns = makeTurns(waitingLimits);
  const searches = new Set<Promise<unknown>>();

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
    search: async (teamId, texts) => {
      const search = turns(teamId, () => searchNow(texts));
      searches.add(search);
      try {
        const result = await search;
        return result === 'busy' ? { kind: 'busy' } : result;
      } finally {
        searches.delete(search);
      }
    },
    close: async () => {
      await Promise.allSettled(searches);
      await current?.terminate();
      current = undefined;
    },
  };
}
