import type { Logger } from 'pino';

/** Steps that undo the start of the service. */
export interface Undo {
  add(step: () => Promise<unknown>): void;
  /** Runs the steps in reverse order. A step that fails is logged, and the others still run. */
  run(): Promise<void>;
}

/** Collects the steps of a start, which run when the service stops or when its start fails half-way. */
export function makeUndo(log: Logger): Undo {
  const steps: (() => Promise<unknown>)[] = [];
  return {
    add: (step) => void steps.push(step),
    run: async () => {
      for (const step of steps.splice(0).reverse()) {
        await step().catch((error: unknown) => log.error({ err: error }, 'a part of the service did not stop cleanly'));
      }
    },
  };
}
