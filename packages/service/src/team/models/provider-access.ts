import type { ModelProviderSource } from '@runyard/contract/team/model-providers';
import { type ModelSettings, type ProviderName, type Providers, upstreamsOf } from './providers.ts';

/** The providers that can be used now, from the settings and from the database. */
export interface ProviderAccess {
  /** The object stays the same until the access to a provider changes. */
  upstreams(): Providers;
  sourceOf(provider: ProviderName): ModelProviderSource;
}

/** Combines the settings with the stored access. The settings have priority. `stored` returns the same object until a row changes. */
export function combineAccess(settings: ModelSettings, stored: () => Providers): ProviderAccess {
  const ofSettings = upstreamsOf(settings);
  let combined: { readonly of: Providers; readonly all: Providers } | undefined;
  return {
    upstreams: () => {
      const of = stored();
      if (combined?.of !== of) combined = { of, all: { ...of, ...ofSettings } };
      return combined.all;
    },
    sourceOf: (provider) => {
      if (ofSettings[provider] !== undefined) return 'settings';
      return stored()[provider] === undefined ? 'none' : 'stored';
    },
  };
}
