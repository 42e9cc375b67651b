/** Path, below the server root, of objects that a worker stores for later runs. Only the worker answers requests for this path. */
export const workerCachePath = '/api/v1/worker-cache';
