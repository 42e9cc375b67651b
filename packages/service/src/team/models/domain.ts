import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { type ProviderRouteDeps, providerRoutes, type TestProvider } from './provider-routes.ts';
import { modelRoutes } from './routes.ts';
import { sealedProviders } from './stored-providers.ts';

/**
 * Manages the models that runs can name, and the access to their providers. `isOutOfRequests` returns whether the team has used up its
 * budget.
 */
export const modelsDomain = (
  deps: ProviderRouteDeps,
  isOutOfRequests: Parameters<typeof modelRoutes>[1],
  testProvider: TestProvider,
): Domain => ({
  name: 'models',
  routes: () => [...modelRoutes(deps, isOutOfRequests), ...providerRoutes(deps, testProvider)],
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedProviders),
  // Changes arrive as notices. The loop is for a process whose listening connection was lost without an error.
  loops: async () => [
    { name: 'reading the providers of models', everyMs: 10_000, work: () => deps.storedProviders.refresh() },
  ],
});
