import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Settings } from '@runyard/contract/settings/settings';
import type { TaskRow } from './read-task-row.ts';

/** Returns the member of a task that sets how often the agent takes checkpoints. */
export function checkpointsOf(
  { config }: Pick<TaskRow, 'config'>,
  { RUNYARD_CHECKPOINT_SECONDS: seconds }: Pick<Settings, 'RUNYARD_CHECKPOINT_SECONDS'>,
): Pick<AgentTask, 'checkpoint_seconds'> {
  return config.on_worker_loss === 'resume' && seconds > 0 ? { checkpoint_seconds: seconds } : {};
}

/**
 * Returns the member of a task that describes the lost machine, if the execution resumes a turn. `record`: the conversation after
 * `kept`.
 */
export function lossOf(
  { resumes, loss_message: message }: Pick<TaskRow, 'resumes' | 'loss_message'>,
  kept: { readonly keptAt?: string | undefined; readonly doneBlocks: number },
  record: string | undefined,
): Pick<AgentTask, 'loss'> {
  if (resumes === null) return {};
  return {
    loss: {
      message: message ?? '',
      ...(kept.keptAt === undefined ? {} : { kept_at: kept.keptAt }),
      ...(record === undefined ? {} : { record }),
      done_blocks: kept.doneBlocks,
    },
  };
}
