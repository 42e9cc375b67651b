import type { ChildRun } from '@runyard/contract/child-runs';

/** True where the run has ended, or waits for someone itself. */
export const isSettled = ({ state }: Pick<ChildRun, 'state'>): boolean =>
  ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'BLOCKED'].includes(state);
