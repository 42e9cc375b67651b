import type { BubblewrapGround } from './ground.ts';

/** Everything that a supervisor needs to prepare a sandbox, as JSON. */
export interface BubblewrapPreparation {
  readonly id: string;
  readonly ground: Omit<BubblewrapGround, 'log'>;
  /** Host folder that is /opt/runyard. */
  readonly runtime: string;
  /** True: its agent starts at once and waits for its run. */
  readonly isWarm: boolean;
  readonly serviceRoot: string;
  /** Socket of the worker's cache; absent: agents keep nothing for later runs. */
  readonly cacheSocket?: string;
}
