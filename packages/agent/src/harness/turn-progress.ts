import type { AgentEventBody } from '@runyard/contract/runs/agent-events';

/** The progress of the present turn, for the times of checkpoints. */
export interface TurnProgress {
  /** Records an event of the execution. */
  observe(event: AgentEventBody): void;
  /** True while a turn is in progress and waits for no person. */
  readonly isAtWork: boolean;
  /** True while no action is in progress: no file changes, unless a background process writes. */
  readonly isQuiet: boolean;
  /** Commands of a runbook that need not run again. The runbook sets it. */
  doneBlocks: number;
}

export function turnProgress(): TurnProgress {
  const open = new Set<string>();
  let isRunning = false;
  let isWaiting = false;
  return {
    doneBlocks: 0,
    get isAtWork() {
      return isRunning && !isWaiting;
    },
    get isQuiet() {
      return open.size === 0;
    },
    observe(event) {
      switch (event.type) {
        case 'turn_started':
        case 'turn_finished':
          isRunning = event.type === 'turn_started';
          isWaiting = false;
          open.clear();
          return;
        case 'blocked':
        case 'decided':
          isWaiting = event.type === 'blocked';
          return;
        case 'action':
          open.add(event.action_id);
          return;
        case 'action_result':
          if (event.state !== 'running') open.delete(event.action_id);
          return;
        default:
      }
    },
  };
}
