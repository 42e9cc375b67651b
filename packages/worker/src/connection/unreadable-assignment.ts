import type { WorkerMessage } from '@runyard/contract/worker-protocol';
import { z } from 'zod';

/** What an assignment has at least, whatever else of it is not understood. */
const NamedAssignment = z.object({
  type: z.literal('task_assignment'),
  data: z.object({ task_id: z.string(), execution_id: z.string().optional().catch(undefined) }),
});

/**
 * Returns the rejection of a message that is an assignment but is not understood, so that the run goes to another worker
 * instead of waiting for the claim's time-out. `undefined`: it is none, or does not name its task.
 */
export function rejectionOf(message: unknown, issues: readonly string[]): WorkerMessage | undefined {
  const parsed = NamedAssignment.safeParse(message);
  if (!parsed.success) return undefined;
  const { task_id, execution_id } = parsed.data.data;
  return {
    type: 'task_rejected',
    data: {
      task_id,
      reason: `the assignment is not understood (${issues.join('; ')}): use a worker of the service's version`,
      ...(execution_id === undefined ? {} : { execution_id }),
    },
  };
}
