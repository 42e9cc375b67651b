/** Choices of a team about models, and the providers that have an outage. */
import type { ProviderName } from './providers.ts';

/** An outage of a provider, as all service processes see it. */
export interface Outage {
  readonly provider: ProviderName;
  /** RFC 3339; identifies an outage of the provider. */
  readonly beganAt: string;
  /** Seconds until the provider is probed again, at least 1. */
  readonly probeInSeconds: number;
}

export interface ModelChoices {
  /** Null: the default model of the service. */
  readonly defaultId: string | null;
  /** Fallbacks of runs that name no fallbacks. */
  readonly fallbackIds: readonly string[];
  readonly disabledIds: readonly string[];
  readonly outages: readonly Outage[];
  /** True: the team has spent its budget, so its runs get no model. */
  readonly isOutOfRequests?: boolean;
}

/** The choices of a team that has stored no choices, while all providers work. */
export const noChoices: ModelChoices = { defaultId: null, fallbackIds: [], disabledIds: [], outages: [] };

/** Returns the outage of a provider; undefined: no outage is known. */
export const outageOf = ({ outages }: ModelChoices, provider: ProviderName | undefined): Outage | undefined =>
  outages.find((outage) => outage.provider === provider);
