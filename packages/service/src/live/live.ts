/** The live streams of this process: what is followed, what is read for it, and the one timer behind. */
import { keysChannel } from '../access/keys/directory.ts';
import type { Engine } from '../executions/engine.ts';
import { makePulse, type Pulse } from './pulse.ts';
import { openRunFeeds, type RunFeeds } from './run-feeds.ts';
import { openTeamFeeds, type TeamFeeds } from './team-feeds.ts';

/** A notice that was lost without a sign is made up for within so many seconds. */
const pollSeconds = 60;
/** A deleted key is told by a notice; one that expires is not. */
const checkKeysSeconds = 15;

export interface Live {
  readonly runs: RunFeeds;
  readonly teams: TeamFeeds;
  readonly pulse: Pick<Pulse, 'add' | 'remove'>;
  /** Ends all streams; opens none after it. */
  stop(): void;
}

export interface LiveOptions {
  /** How long a reader may take nothing, milliseconds; default: 60,000. */
  readonly stuckMs?: number;
  readonly beatMs?: number;
}

/** Opens the rooms, and cuts streams whose key was deleted or expired. */
export async function openLive(engine: Engine, options: LiveOptions = {}): Promise<Live> {
  const { db, log } = engine;
  const runs = openRunFeeds(engine);
  const teams = await openTeamFeeds(engine);
  const pulse = makePulse(db, options);
  const checkKeys = () => {
    pulse.checkKeys().catch((error: unknown) => log.warn({ err: error }, 'checking the keys of streams failed'));
  };
  const stopKeys = await db.listen(keysChannel, checkKeys, checkKeys);
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += 1;
    pulse.beat();
    runs.poll(seconds, pollSeconds);
    if (seconds % pollSeconds === 0) teams.poll();
    if (seconds % checkKeysSeconds === 0) checkKeys();
  }, options.beatMs ?? 1_000);
  timer.unref();
  return {
    runs,
    teams,
    pulse,
    stop: () => {
      clearInterval(timer);
      stopKeys();
      runs.stop();
      teams.stop();
    },
  };
}
