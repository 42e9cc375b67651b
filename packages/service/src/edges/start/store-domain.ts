import type { Domain } from '../../platform/domain.ts';
import { makeStoreCheck } from '../../platform/store/migrations/readiness.ts';
import type { ServiceDeps } from '../http/server/deps.ts';

/** The store as a domain. It is not in `platform/store/`, which has no imports of domains. */
export const storeDomain = (deps: ServiceDeps): Domain => ({
  name: 'store',
  readiness: { problem: makeStoreCheck(deps), degraded: () => deps.freeSpace.problem() },
  loops: async () => [{ name: 'measuring the free disk space', everyMs: 1_000, work: () => deps.freeSpace.measure() }],
});
