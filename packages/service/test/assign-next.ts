/** Test support: assigns to one slot. */
import type { ExecutionDeps } from '../src/runs/executions/deps.ts';
import { type Assignment, assign, type FreeSlot, type FreeSlots } from '../src/runs/executions/queue/assign.ts';

/** One free slot, and what its worker can run. */
export type OneSlot = FreeSlot & Omit<FreeSlots, 'slots'>;

/**
 * Assigns the next queued execution to a slot. `nothing`: no execution is queued for it. `contended`: another assigner was faster; try
 * again.
 */
export async function assignNext(
  deps: ExecutionDeps,
  { connectionId, workerId, workerInstance, ...free }: OneSlot,
): Promise<Assignment | 'nothing' | 'contended'> {
  const { assignments, isContended } = await assign(deps, {
    ...free,
    slots: [{ connectionId, workerId, workerInstance }],
  });
  return assignments[0] ?? (isContended ? 'contended' : 'nothing');
}
