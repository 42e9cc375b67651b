/** Manages the thread that searches texts for patterns. */
import { openBoundedThread } from '../../platform/threads/bounded-thread.ts';
import type { PolicyRule, TextKind } from './policy-file.ts';

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
 * `rule`: index of the rule. `too_slow`: the search for the rule took too much processor time. `busy`: too many checks wait, or the machine
 * gives the thread no processor time.
 */
export type PatternResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'found' | 'too_slow'; readonly rule: number };

export interface PatternThread {
  /** Searches texts of a team. Calls of the same team are handled in order; different teams take turns. */
  search(teamId: string, texts: readonly PolicyText[]): Promise<PatternResult>;
  close(): Promise<void>;
}

/** Creates the thread. `limitMs`: maximum processor time for one check, in milliseconds. */
export function openPatternThread(rules: PatternThreadData['rules'], limitMs: number): PatternThread {
  const data: PatternThreadData = { rules: rules.map(({ pattern, applies_to }) => ({ pattern, applies_to })) };
  const thread = openBoundedThread<ToPatternThread, FromPatternThread>({
    module: new URL('./pattern-worker.ts', import.meta.url),
    data,
    limitMs,
    waiting: { waiting: 500, waitingPerTeam: 50 },
    isLast: ({ kind }) => kind !== 'searching',
  });
  return {
    search: async (teamId, texts) => {
      let rule = 0;
      const outcome = await thread.run(teamId, { texts }, (message) => {
        if (message.kind === 'searching') rule = message.rule;
      });
      switch (outcome.kind) {
        case 'done':
          return outcome.message.kind === 'found' ? { kind: 'found', rule: outcome.message.rule } : { kind: 'none' };
        case 'too_slow':
          return { kind: 'too_slow', rule };
        case 'busy':
          return { kind: 'busy' };
      }
    },
    close: thread.close,
  };
}
