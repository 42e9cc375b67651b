/** Describes the choices of a team about models, and the outages of providers. */
import type { ProviderName } from './providers.ts';

/** An outage of a provider, as all service processes see it. */
export interface Outage {
  readonly provider: ProviderName;
  /** Time at which the outage began, in RFC 3339 format. It identifies the outage. */
  readonly beganAt: string;
  /** Seconds until the provider is probed again, at least 1. */
  readonly probeInSeconds: number;
}

export interface ModelChoices {
  /** Id of the team's default model; null: the default model of the service. */
  readonly defaultId: string | null;
  /** Ids of the fallback models for runs that name no fallbacks. */
  readonly fallbackIds: readonly string[];
  readonly disabledIds: readonly string[];
  readonly outages: readonly Outage[];
  /** True if the team has spent its budget, so its runs get no model. */
  readonly isOutOfRequests?: boolean;
}

/** The choices of a team that has stored no choices, if no provider has an outage. */
export const noChoices: ModelChoices = { defaultId: null, fallbackIds: [], disabledIds: [], outages: [] };

/** Returns the outage of a provider; undefined if no outage is known. */
export const outageOf = ({ outages }: ModelChoices, provider: ProviderName | undefined): Outage | undefined =>
  outages.find((outage) => outage.provider === provider);
