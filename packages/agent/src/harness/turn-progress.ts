import type { AgentEventBody } from '@runyard/contract/runs/agent-events';

/** The progress of the current turn, from which the agent decides when to take checkpoints. */
export interface TurnProgress {
  /** Records an event of the execution. */
  observe(event: AgentEventBody): void;
  /** True while a turn is in progress and does not wait for a person. */
  readonly isAtWork: boolean;
  /** True while no action is in progress. During this time, only background processes can change files. */
  readonly isQuiet: boolean;
  /** Number of the turn's commands that need not run again if the machine is lost. The runbook sets this number. */
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
