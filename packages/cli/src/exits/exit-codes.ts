import type { RunState } from '@runyard/contract/runs/states';

/** Exit code of a command that was ended early, by a signal or because the reader of its output closed the pipe. */
export const interruptedCode = 130;

/**
 * Returns the exit code of a command that watched a run. `state` is the last state of the run. If the run has not ended in this state,
 * the command was interrupted.
 */
export function exitCodeOf(state: RunState): number {
  switch (state) {
    case 'SUCCEEDED':
      return 0;
    case 'FAILED':
      return 1;
    case 'BLOCKED':
      return 3;
    case 'CANCELLED':
      return 4;
    case 'ERROR':
      return 5;
    case 'QUEUED':
    case 'PENDING':
    case 'CLAIMED':
    case 'INPROGRESS':
      return interruptedCode;
  }
}

/** Explains the exit codes in the help of the commands that watch a run. */
export const exitCodesHelp = `
Exit code: 0 the run SUCCEEDED; 1 it FAILED, or the command failed; 2 wrong usage; 3 the run is BLOCKED;
4 it was CANCELLED; 5 ERROR; 130 interrupted by Ctrl-C, SIGTERM, SIGHUP or a closed pipe.`;
