/** Defines the phases of an execution, and their groups as SQL. */

/** The phases of an execution, as `executions.phase` stores them. */
export type Phase = 'queued' | 'assigned' | 'claimed' | 'running' | 'idle' | 'stopping' | 'ended';

/** Returns a group of phases as an SQL list for `IN`. Only this file writes such lists. */
const listOf = (...phases: Phase[]): string => `(${phases.map((phase) => `'${phase}'`).join(', ')})`;

/** The execution was assigned to a worker, but the agent has not begun the first turn yet. */
export const beforeStartPhases = listOf('assigned', 'claimed');

/** The execution is being set up or runs a turn, and must end before a deadline. */
export const workingPhases = listOf('claimed', 'running');

/**
 * The execution uses a slot of its worker and counts for its team's limit.
 */
export const slotPhases = listOf('assigned', 'claimed', 'running');

/** The agent works or waits in its sandbox, and has not been asked to exit. */
export const livePhases = listOf('claimed', 'running', 'idle');

/** The phases of `livePhases`, and the phase of an assignment that no worker has claimed yet. */
export const stayingPhases = listOf('assigned', 'claimed', 'running', 'idle');

const withSandbox: readonly Phase[] = ['claimed', 'running', 'idle', 'stopping'];

/** A worker has the sandbox of the execution, or is creating it. */
export const sandboxPhases = listOf(...withSandbox);
/** Returns whether the phase is one of `sandboxPhases`. */
export const hasSandbox = (phase: string | null): boolean => withSandbox.some((each) => each === phase);

/** The execution was assigned to a worker and has not ended, so the run token is valid. */
export const assignedPhases = listOf('assigned', 'claimed', 'running', 'idle', 'stopping');

/** Phases in which the sandbox of a failed setup stays: the agent waits in it, or runs a turn. */
export const debugPhases = listOf('running', 'idle');

/** In these phases of a run in a final state, the end of the sandbox does not change the run. */
export const settledPhases = listOf('running', 'idle', 'stopping');

/** The execution uses no slot, because the agent waits for a follow-up or was asked to exit. */
export const slotlessPhases = listOf('idle', 'stopping');

/** The agent accepts no further follow-up. */
export const leavingPhases = listOf('stopping', 'ended');
