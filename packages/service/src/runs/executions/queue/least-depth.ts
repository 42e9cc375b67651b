/**
 * Bounds the sandboxes of a worker and of a team apart from their slots: a sandbox that waits for other runs holds no slot, but uses memory,
 * and its commands may go on where the worker cannot freeze them. A run at depth d starts only while fewer than (2 + d) times the slots are live. So those below a run
 * that waits always find room, and the number of sandboxes has a bound, because the depth has one.
 */

/** Returns the least depth of a run that may start beside `live` sandboxes; a run without a parent has the depth 0. */
export const leastDepth = (live: number, slots: number): number =>
  Math.max(0, Math.floor(live / Math.max(1, slots)) - 1);

/** SQL: the same of two numbers. */
export const leastDepthSql = (live: string, slots: string): string =>
  `greatest(0, ${live} / greatest(1, ${slots}) - 1)`;
