/** Manages the thread that checks output schemas and results. Both come from outside, so a check has a limit of processor time and memory. */
import type { ResultFault } from '@runyard/contract/runs/results';
import { type BoundedThread, openBoundedThread } from '../../platform/threads/bounded-thread.ts';

/** A schema, and a value to check with it, each as JSON; without a value, only the schema is checked. */
export interface ToSchemaThread {
  readonly schema: string;
  readonly value?: string;
}
export type FromSchemaThread =
  | { readonly kind: 'fits' }
  | { readonly kind: 'invalid_schema'; readonly message: string }
  | { readonly kind: 'faults'; readonly faults: readonly ResultFault[] };

/**
 * `too_slow`: the check took too much processor time or memory. `busy`: too many checks wait, or the machine gives the thread no processor
 * time.
 */
export type SchemaVerdict =
  | { readonly kind: 'fits' | 'too_slow' | 'busy' }
  | { readonly kind: 'invalid_schema'; readonly message: string }
  | { readonly kind: 'faults'; readonly faults: readonly ResultFault[] };

/** Processor time of one check, in milliseconds. A schema of 64 KB with a result of 8 MB takes less than a second. */
const usualLimitMs = 2_000;

export interface SchemaThread {
  /** Checks a schema or, with `value`, a value with the schema, for a team. Teams take turns. */
  check(teamId: string, work: ToSchemaThread): Promise<SchemaVerdict>;
  close(): Promise<void>;
}

/** Creates the thread. It starts with the first check. */
export function openSchemaThread(limitMs = usualLimitMs): SchemaThread {
  const thread: BoundedThread<ToSchemaThread, FromSchemaThread> = openBoundedThread({
    module: new URL('./schema-worker.ts', import.meta.url),
    limitMs,
    waiting: { waiting: 500, waitingPerTeam: 50 },
    isLast: () => true,
  });
  return {
    async check(teamId, work) {
      const outcome = await thread.run(teamId, work);
      return outcome.kind === 'done' ? outcome.message : outcome;
    },
    close: thread.close,
  };
}

/** The thread of this process. It does not keep the process alive. */
export const schemaThread = openSchemaThread();
