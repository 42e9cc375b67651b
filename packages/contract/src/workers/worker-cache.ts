/** Path of the objects that a worker keeps for later runs, below the server root. The worker answers it, never the service. */
export const workerCachePath = '/api/v1/worker-cache';
