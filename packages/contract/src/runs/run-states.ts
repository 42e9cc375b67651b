/** States of a run. This file does not load zod, because the programs inside a sandbox load it. */

export const runStates = [
  'QUEUED',
  'PENDING',
  'CLAIMED',
  'INPROGRESS',
  'SUCCEEDED',
  'FAILED',
  'BLOCKED',
  'ERROR',
  'CANCELLED',
] as const;
export type RunState = (typeof runStates)[number];

/** States of a run that has ended. Only a follow-up can change the state of such a run. */
export const terminalStates = ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'] as const satisfies readonly RunState[];

/** Returns true if a run in this state has ended, so that only a follow-up can change its state. */
export function isTerminal(state: RunState): boolean {
  return (terminalStates as readonly RunState[]).includes(state);
}

/** Returns true if a run in this state has ended or waits for a person, so that the state does not change without a person. */
export function isSettled(state: RunState): boolean {
  return isTerminal(state) || state === 'BLOCKED';
}

/**
 * The comment at the end of a run's live stream says that every event was sent. A stream that ends without this comment was interrupted.
 */
export const endOfStream = 'end';
