/** Channel of notices about new work; the payload is the pool. */
export const queueChannel = 'runyard_queue';

/** Channel of notices about state changes and events; the payload is the run's id. */
export const runChannel = 'runyard_runs';
