import type { Logger } from 'pino';
import { count } from '../../../platform/metrics/record.ts';
import type { Provider } from './provider.ts';

type AskedProvider = Pick<Provider, 'id' | 'check'>;

interface WatchDeps {
  readonly signOn: { readonly providers: readonly AskedProvider[] };
  readonly log: Pick<Logger, 'warn' | 'info'>;
}

/** Knows with which identity providers people can sign in now. */
export interface ProviderWatch {
  /** Asks each provider. Logs a fault when it begins, changes or ends. */
  ask(): Promise<void>;
  /** Names the providers with faults; null if there are none. Anyone may read the text, so it has no reasons. */
  degraded(): string | null;
}

export function watchProviders(deps: WatchDeps): ProviderWatch {
  const faults = new Map<string, string>();

  const askOne = async ({ id, check }: AskedProvider): Promise<void> => {
    const { log } = deps;
    const reason = await check();
    const before = faults.get(id);
    count('runyard_identity_provider_checks_total', { result: reason === null ? 'done' : 'failed' });
    if (reason === null) faults.delete(id);
    else faults.set(id, reason);
    if (reason === (before ?? null)) return;
    if (reason === null) log.info({ provider: id }, 'people can sign in with an identity provider again');
    else log.warn({ provider: id, reason }, 'people cannot sign in with an identity provider');
  };

  return {
    ask: async () => void (await Promise.all(deps.signOn.providers.map(askOne))),
    degraded: () =>
      faults.size === 0
        ? null
        : `people cannot sign in with the identity provider ${[...faults.keys()].join(', ')}; the log has the reason`,
  };
}
