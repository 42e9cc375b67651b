/** Groups of an execution's phases, each as the list of an `IN` in SQL. */

/** Its agent is at work, or waits in its sandbox, and nobody has told it to go. */
export const livePhases = "('claimed', 'running', 'idle')";

/** A worker has its sandbox, or is making it. */
export const heldPhases = "('claimed', 'running', 'idle', 'stopping')";

/** It was handed to a worker and has not ended: its run token opens what is its own. */
export const handedOutPhases = "('assigned', 'claimed', 'running', 'idle', 'stopping')";
