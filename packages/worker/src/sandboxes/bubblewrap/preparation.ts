import type { BubblewrapGround } from './ground.ts';

/** Everything that a supervisor process needs to prepare a sandbox. The worker sends it as JSON. */
export interface BubblewrapPreparation {
  readonly id: string;
  readonly ground: Omit<BubblewrapGround, 'log'>;
  /** Folder of the machine that the sandbox sees as /opt/runyard. */
  readonly runtime: string;
  /** True if an agent starts in the sandbox at once and waits for a run. */
  readonly isWarm: boolean;
  readonly serviceRoot: string;
  /** Socket of the worker's cache. If it is absent, agents store nothing for later runs. */
  readonly cacheSocket?: string;
}
