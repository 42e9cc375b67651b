import { type BackendKind, unavailable } from '../backend-kind.ts';

const reason = 'the docker backend is not available yet: set RUNYARD_SANDBOX=bubblewrap or auto';

/** Containers. Not available yet: a setting that names it is refused with what to do. */
export const docker: BackendKind = {
  probe: async () => unavailable('docker', reason),
  open: () => Promise.reject(new Error(reason)),
  sweep: async () => 0,
};
