/** Channel on which new work for a pool is told; the payload is the pool. */
export const queueChannel = 'runyard_queue';

/** Channel on which every state change and event names its run. */
export const runChannel = 'runyard_runs';
