import type { ProcessIdentity } from '@runyard/system/process-identity';
import { type Addressed, type Channel, shareLines } from './channels.ts';
import type { Lines } from './lines.ts';
import type { Order, Report } from './messages.ts';

/**
 * Maximum number of sandboxes that one supervisor has at the same time. More sandboxes in one supervisor save memory, because a supervisor
 * needs about 35 MB. But if a supervisor dies, all its sandboxes end.
 */
export const mostAtOnce = 8;
/**
 * Maximum number of sandboxes that one supervisor has during its life. The limit bounds the effect of a possible memory leak. The limit is
 * high, because a new supervisor costs as much processor time as several sandboxes until V8 has optimized the supervisor's code.
 */
export const mostInAll = 256;
/** A supervisor without a sandbox is kept for this time. */
const idleMs = 10_000;
/** Longest wait for the end of supervisors that have no sandbox. */
const longestEndMs = 1000;

/** A supervisor that this worker started. */
export interface SupervisorProcess {
  /** Id that is in the label of the supervisor and in the name of the file with its standard error. */
  readonly id: string;
  readonly process: ProcessIdentity;
  readonly lines: Pick<Lines<Addressed<Order>, Addressed<Report>>, 'send' | 'close' | 'handle'>;
  /** Resolves when its process has ended. */
  readonly exited: Promise<unknown>;
}

/** A place for one sandbox in a supervisor. */
export interface Place {
  /** Id of the supervisor. */
  readonly id: string;
  readonly process: ProcessIdentity;
  readonly lines: Channel<Order, Report>;
  /** Releases the place. Must be called when no part of the sandbox is left. */
  leave(): void;
}

/** The supervisors that a worker started. */
export interface Places {
  /** Returns a place for the sandbox with this id. Starts a new supervisor if all others are full. */
  take(sandbox: string): Promise<Place>;
  /** Closes the connections to all supervisors. Resolves when the supervisors without a sandbox have ended. */
  close(): Promise<void>;
}

interface Held {
  readonly open: (sandbox: string) => Channel<Order, Report>;
  readonly sandboxes: Set<string>;
  inAll: number;
  idle: NodeJS.Timeout | undefined;
}

/** Distributes sandboxes to supervisors. Several sandboxes share one supervisor, because each supervisor costs memory and time to start. */
export function keepPlaces(start: () => Promise<SupervisorProcess>): Places {
  const places = new Map<SupervisorProcess, Held>();
  let starting: Promise<void> | undefined;

  const forget = (supervisor: SupervisorProcess): void => {
    clearTimeout(places.get(supervisor)?.idle);
    places.delete(supervisor);
  };

  const end = (supervisor: SupervisorProcess): void => {
    forget(supervisor);
    supervisor.lines.close();
  };

  const add = (supervisor: SupervisorProcess): void => {
    // Ignores reports about sandboxes without a channel, because these sandboxes have ended.
    const open = shareLines<Order, Report>(supervisor.lines, { message() {}, closed: () => forget(supervisor) });
    places.set(supervisor, { open, sandboxes: new Set(), inAll: 0, idle: undefined });
  };

  /**
   * Returns a supervisor that has a free place. If there are several, returns the supervisor with the most sandboxes, so that other
   * supervisors become empty and end.
   */
  const withRoom = (): [SupervisorProcess, Held] | undefined =>
    [...places]
      .filter(([, { sandboxes, inAll }]) => sandboxes.size < mostAtOnce && inAll < mostInAll)
      .sort(([, one], [, other]) => other.sandboxes.size - one.sandboxes.size)[0];

  const leave = (supervisor: SupervisorProcess, sandbox: string): void => {
    const place = places.get(supervisor);
    // Does nothing on a second call for the same sandbox. Otherwise a second timer would start, could not be cancelled, and would end
    // a supervisor that has a new sandbox.
    if (place === undefined || !place.sandboxes.delete(sandbox) || place.sandboxes.size > 0) return;
    if (place.inAll >= mostInAll) end(supervisor);
    else place.idle = setTimeout(() => end(supervisor), idleMs).unref();
  };

  return {
    async take(sandbox) {
      for (;;) {
        const found = withRoom();
        if (found !== undefined) {
          const [supervisor, place] = found;
          clearTimeout(place.idle);
          place.sandboxes.add(sandbox);
          place.inAll += 1;
          const { id, process } = supervisor;
          return { id, process, lines: place.open(sandbox), leave: () => leave(supervisor, sandbox) };
        }
        starting ??= start()
          .then(add)
          .finally(() => {
            starting = undefined;
          });
        await starting;
      }
    },
    async close() {
      const free = [...places].filter(([, { sandboxes }]) => sandboxes.size === 0);
      for (const supervisor of [...places.keys()]) end(supervisor);
      let late: NodeJS.Timeout | undefined;
      const tooLate = new Promise((resolve) => {
        late = setTimeout(resolve, longestEndMs);
      });
      await Promise.race([Promise.all(free.map(([{ exited }]) => exited)), tooLate]);
      clearTimeout(late);
    },
  };
}
