/** The live streams of this process: their feeds and their timer. */
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { openDeliveryEvents } from './delivery-events.ts';
import { makePulse, type Pulse } from './pulse.ts';
import { openRunFeeds, type RunFeeds } from './run-feeds.ts';
import { eventsOfRuns } from './team-events.ts';
import { openTeamFeeds, type TeamFeeds } from './team-feeds.ts';

export interface Live {
  readonly runs: RunFeeds;
  /** Feeds of the runs of each team. */
  readonly teams: TeamFeeds;
  /** Feeds of the deliveries to the webhooks of each team. */
  readonly deliveries: TeamFeeds;
  readonly pulse: Pick<Pulse, 'add' | 'remove'>;
  stop(): void;
}

/** Milliseconds between two beats. */
const beatMs = 1_000;

/** Opens the feeds of this process. */
export async function openLive(deps: ExecutionDeps): Promise<Live> {
  const runs = openRunFeeds(deps);
  const teams = await openTeamFeeds(deps, eventsOfRuns(deps.notices));
  const deliveries = await openTeamFeeds(deps, await openDeliveryEvents(deps.db));
  const pulse = makePulse();
  const timer = setInterval(() => {
    pulse.beat();
    // Also read without a notice, because a notice may be lost.
    for (const feeds of [teams, deliveries]) feeds.poll();
  }, beatMs);
  timer.unref();
  return {
    runs,
    teams,
    deliveries,
    pulse,
    stop: () => {
      clearInterval(timer);
      runs.stop();
      teams.stop();
      deliveries.stop();
    },
  };
}
