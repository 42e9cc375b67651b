/** The name under which a worker connects. `config.worker_host` of a run selects a worker by this name. */
export const workerName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
