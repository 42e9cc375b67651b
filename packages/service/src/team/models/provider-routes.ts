import { routes } from '@runyard/contract/routes';
import type {
  ModelProviderAccess,
  PutModelProviderRequest,
  TestModelProviderResponse,
} from '@runyard/contract/team/model-providers';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { mayReadInstallation } from '../access/keys/operator.ts';
import type { Principal } from '../access/keys/principal.ts';
import { readProfiles } from '../access/profiles.ts';
import { serve } from '../access/serve.ts';
import type { Models } from './models.ts';
import { endpointOf, type ProviderName, providerKinds, type Upstream } from './providers.ts';
import { deleteProvider, putProvider, type StoredProviders } from './stored-providers.ts';

/** Sends a test request to a provider. */
export type TestProvider = (provider: ProviderName, upstream: Upstream) => Promise<TestModelProviderResponse>;

export interface ProviderRouteDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly models: Models;
  readonly storedProviders: StoredProviders;
}

/** Maximum number of tests that wait for providers at the same time in one process. */
const maxTests = 4;

const names = Object.keys(providerKinds) as ProviderName[];

/** Returns the faults of a request that stores the access to a provider. */
function faultsOf(stored: StoredProviders, provider: ProviderName, body: PutModelProviderRequest): Fault[] {
  const faults: Fault[] = [];
  if (provider !== 'local' && body.key === undefined) faults.push({ path: 'key', message: 'is required' });
  if (provider === 'local' && body.base_url === undefined)
    faults.push({ path: 'base_url', message: 'is required for local' });
  const url = body.base_url;
  if (url === undefined) return faults;
  const message = /[?#]/.test(url) ? 'must not have a query or a fragment' : stored.checkBaseUrl(url);
  if (message !== null) faults.push({ path: 'base_url', message });
  return faults;
}

/** Routes for the access of the installation to providers of models. Only owners of the operator's team may call them. */
export function providerRoutes(deps: ProviderRouteDeps, test: TestProvider): readonly ServedRoute[] {
  const { db, vault, models, storedProviders } = deps;
  let waiting = 0;

  const describe = async (principal: Principal): Promise<ModelProviderAccess[]> => {
    const stored = storedProviders.list();
    const people = stored.map(({ set_by: uid }) => ({ kind: 'user' as const, uid }));
    const profileOf = await readProfiles(db, principal.teamId, people);
    return names.map((provider) => {
      const source = models.sourceOf(provider);
      const upstream = models.upstreams[provider];
      const row = stored.find(({ name }) => name === provider);
      return {
        provider,
        source: row !== undefined && source === 'none' ? 'stored' : source,
        setting: providerKinds[provider].neededSetting,
        ...(upstream ? { endpoint: endpointOf(upstream) } : {}),
        ...(row
          ? {
              ...(row.base_url === null ? {} : { base_url: row.base_url }),
              ...(row.last_four === null ? {} : { last_four: row.last_four }),
              set_by: profileOf({ kind: 'user', uid: row.set_by }),
              set_at: row.set_at,
              ...(row.problem === undefined ? {} : { problem: row.problem }),
            }
          : {}),
      };
    });
  };

  const refuseOthers = async (principal: Principal): Promise<Refusal | null> =>
    (await mayReadInstallation(db, principal))
      ? null
      : refuse('not_authorized', { detail: "Only owners of the team of the operator's key may read and change this." });

  return [
    serve(routes.listModelProviders, async ({ principal }) => {
      const refused = await refuseOthers(principal);
      return refused ?? { providers: await describe(principal) };
    }),

    serve(routes.putModelProvider, async ({ principal, params: { provider }, body }) => {
      const refused = await refuseOthers(principal);
      if (refused) return refused;
      const { neededSetting, displayName } = providerKinds[provider];
      if (models.sourceOf(provider) === 'settings')
        return refuse('conflict', {
          detail: `The setting ${neededSetting} of the service gives the access to ${displayName} and has priority. Remove it from the settings first.`,
        });
      const base = body.base_url?.replace(/\/+$/, '');
      const request = { ...body, ...(base === undefined ? {} : { base_url: base }) };
      const faults = faultsOf(storedProviders, provider, request);
      if (faults.length > 0) return invalid(faults);
      await putProvider(db, vault, principal, provider, request);
      await storedProviders.refresh();
      const made = (await describe(principal)).find((each) => each.provider === provider);
      if (!made) throw new Error('the provider is not listed');
      return made;
    }),

    serve(routes.deleteModelProvider, async ({ principal, params: { provider } }) => {
      const refused = await refuseOthers(principal);
      if (refused) return refused;
      if (!(await deleteProvider(db, principal, provider))) return notFound('stored key of this provider');
      await storedProviders.refresh();
      return { success: true as const };
    }),

    serve(routes.testModelProvider, async ({ principal, params: { provider } }) => {
      const refused = await refuseOthers(principal);
      if (refused) return refused;
      const upstream = models.upstreams[provider];
      if (upstream === undefined) return notFound('access to this provider');
      if (waiting >= maxTests)
        return refuse('resource_unavailable', {
          detail: 'Other tests wait for their providers. Test again later.',
          headers: { 'retry-after': '5' },
        });
      waiting += 1;
      try {
        return await test(provider, upstream);
      } finally {
        waiting -= 1;
      }
    }),
  ];
}
