/** Groups of phases of an execution, each as the list of an `IN` in SQL. No other file writes such a list. */
import type { Phase } from './transition.ts';

const listOf = (...phases: Phase[]): string => `(${phases.map((phase) => `'${phase}'`).join(', ')})`;

/** Was assigned to a worker, whose agent has not begun the first turn yet. */
export const beforeStartPhases = listOf('assigned', 'claimed');

/** Is being set up or runs a turn: a deadline counts. */
export const workingPhases = listOf('claimed', 'running');

/** Takes a slot of its worker and of its team's limit. The index `executions_busy` has the same list. */
export const slotPhases = listOf('assigned', 'claimed', 'running');

/** The agent works or waits in its sandbox, and has not been asked to leave. */
export const livePhases = listOf('claimed', 'running', 'idle');

/** The same, and the assignments that no worker has claimed yet. */
export const stayingPhases = listOf('assigned', 'claimed', 'running', 'idle');

const withSandbox: readonly Phase[] = ['claimed', 'running', 'idle', 'stopping'];

/** A worker has the sandbox, or is creating it. */
export const sandboxPhases = listOf(...withSandbox);
/** Returns whether the phase is one of `sandboxPhases`. */
export const hasSandbox = (phase: string | null): boolean => withSandbox.some((each) => each === phase);

/** Was assigned to a worker and has not ended: the run token is valid. */
export const assignedPhases = listOf('assigned', 'claimed', 'running', 'idle', 'stopping');

/** In the sandbox of a failed setup: the agent waits there, or runs a turn. */
export const debugPhases = listOf('running', 'idle');

/** The end of the sandbox does not change the run, which has its final state already. */
export const settledPhases = listOf('running', 'idle', 'stopping');

/** Takes no slot: the agent waits for a follow-up, or was asked to leave. */
export const slotlessPhases = listOf('idle', 'stopping');

/** The agent accepts no further follow-up. */
export const leavingPhases = listOf('stopping', 'ended');
