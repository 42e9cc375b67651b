/** Detects the beginning and the end of a provider's outage from the requests of runs. */

import type { Outage } from '../../../team/models/choices.ts';
import type { ProviderName } from '../../../team/models/providers.ts';

export interface HealthDeps {
  begin(provider: ProviderName, reason: string): Promise<boolean>;
  end(outage: Outage): Promise<boolean>;
  /** Returns true if the provider answers a request of the service itself. */
  probe(provider: ProviderName): Promise<boolean>;
  /** Returns true if the service has one team only, so an outage that this team causes affects no other team. */
  hasOneTeam(): Promise<boolean>;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Milliseconds of a monotonic clock. */
  now(): number;
}

interface FailedRun {
  readonly runId: string;
  readonly teamId: string;
}

export interface ModelHealth {
  /** Notes that the provider answered a request. `outage`: the outage that was known when the request began. */
  worked(provider: ProviderName, outage: Outage | undefined): void;
  /** Notes that a request failed because of the provider. `reason` contains no text of the provider. */
  failed(provider: ProviderName, run: FailedRun, reason: string): void;
  /** Resolves when all changes are written to the database. */
  settled(): Promise<void>;
}

/** Number of consecutive failed requests that begin an outage. */
const enough = 5;
/** Two failures with a longer time between them do not count for the same outage. */
const togetherMs = 5 * 60_000;
/** Shortest time between two attempts of this process to begin an outage of a provider. */
const pauseMs = 10_000;

/** The failures of a provider since its last success. Two entries in `runs` and in `teams` are enough to detect an outage. */
interface Failures {
  count: number;
  lastAt: number;
  readonly runs: Set<string>;
  readonly teams: Set<string>;
}

const noFailures = (now: number): Failures => ({ count: 0, lastAt: now, runs: new Set(), teams: new Set() });

/** Opens the detection of outages for one process. Each process counts failures separately; all processes share outages through the database. */
export function openModelHealth(deps: HealthDeps): ModelHealth {
  const failures = new Map<ProviderName, Failures>();
  const triedAt = new Map<ProviderName, number>();
  const writing = new Set<Promise<void>>();

  const inBackground = (work: () => Promise<void>): void => {
    const promise = work().catch((error: unknown) =>
      deps.log.warn({ err: error }, 'the health of models was not written'),
    );
    writing.add(promise);
    void promise.finally(() => writing.delete(promise));
  };

  /**
   * Runs may send requests that make a provider fail, and could cause an outage for all teams. So an outage needs a second sign: the
   * provider also refuses the service itself, or requests of two teams fail. If there is only one team, requests of two runs must fail.
   */
  const isOutage = async (provider: ProviderName, { runs, teams }: Failures): Promise<boolean> => {
    if (!(await deps.probe(provider))) return true;
    return teams.size > 1 || (runs.size > 1 && (await deps.hasOneTeam()));
  };

  const beginOutage = async (provider: ProviderName, reason: string, counted: Failures): Promise<void> => {
    if (!(await isOutage(provider, counted))) return;
    if (await deps.begin(provider, reason)) deps.log.warn({ provider, reason }, 'outage of a model provider');
  };

  return {
    worked: (provider, outage) => {
      failures.delete(provider);
      if (outage === undefined) return;
      inBackground(async () => {
        if (await deps.end(outage)) deps.log.info({ provider }, 'a model provider works again');
      });
    },
    failed: (provider, { runId, teamId }, reason) => {
      const now = deps.now();
      const before = failures.get(provider);
      const counted = before && now - before.lastAt <= togetherMs ? before : noFailures(now);
      counted.count += 1;
      counted.lastAt = now;
      if (counted.runs.size < 2) counted.runs.add(runId);
      if (counted.teams.size < 2) counted.teams.add(teamId);
      failures.set(provider, counted);
      const pause = now - (triedAt.get(provider) ?? Number.NEGATIVE_INFINITY);
      if (counted.count < enough || pause < pauseMs) return;
      triedAt.set(provider, now);
      inBackground(() => beginOutage(provider, reason, counted));
    },
    settled: async () => {
      while (writing.size > 0) await Promise.all(writing);
    },
  };
}
