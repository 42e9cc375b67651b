/** The name under which a worker connects, and by which `config.worker_host` asks for it. */
export const workerName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
