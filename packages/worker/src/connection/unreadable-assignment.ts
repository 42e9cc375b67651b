import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { z } from 'zod';

/** The members that an assignment needs to be rejected. */
const NamedAssignment = z.object({
  type: z.literal('task_assignment'),
  data: z.object({ task_id: z.string(), execution_id: z.string().optional().catch(undefined) }),
});

/**
 * Returns the rejection of an assignment that this worker does not understand, so that the run goes to another worker before the
 * claim times out. Returns `undefined` if the message is no assignment or does not name its task.
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
