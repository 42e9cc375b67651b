import type { AgentEventBody } from '@runyard/contract/agent-protocol';

/** How far the turn in progress is, as far as a checkpoint needs to know. */
export interface TurnProgress {
  /** Notes an event of the execution. */
  observe(event: AgentEventBody): void;
  /** True while a turn is in progress and waits for no person. */
  readonly isAtWork: boolean;
  /** True while no action is in progress: the files are at rest, unless a process of the background writes. */
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
