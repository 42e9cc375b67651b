import type { ProcessIdentity } from '@runyard/system/process-identity';
import { type Addressed, type Channel, shareLines } from './channels.ts';
import type { Lines } from './lines.ts';
import type { Order, Report } from './messages.ts';

/** Sandboxes that a supervisor holds at the same time. These sandboxes end if the supervisor dies, and share its memory of about 35 MB. */
export const mostAtOnce = 8;
/**
 * Sandboxes that a supervisor gets in all. The limit bounds the effect of a possible leak. Starting a supervisor, and running its code
 * before V8 has optimized it, takes the processor time of several sandboxes.
 */
export const mostInAll = 256;
/** Time for which a supervisor without a sandbox is kept. */
const idleMs = 10_000;
/** Longest wait for the end of supervisors that hold no sandbox. */
const longestEndMs = 1000;

/** A supervisor that this worker started. */
export interface SupervisorProcess {
  /** Id in its label, and in the name of the file with its standard error. */
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
  /** Gives the place back, when no part of the sandbox is left. */
  leave(): void;
}

/** The supervisors that a worker started. */
export interface Places {
  /** Returns a place for a sandbox of this id. Starts a supervisor if no other has room. */
  take(sandbox: string): Promise<Place>;
  /** Leaves all supervisors. Resolves when those have ended that hold no sandbox. */
  close(): Promise<void>;
}

interface Held {
  readonly open: (sandbox: string) => Channel<Order, Report>;
  readonly sandboxes: Set<string>;
  inAll: number;
  idle: NodeJS.Timeout | undefined;
}

/** Keeps supervisors. Several sandboxes share one supervisor, and so share its memory and its start time. */
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
    // A report without a channel is about a sandbox that has ended.
    const open = shareLines<Order, Report>(supervisor.lines, { message() {}, closed: () => forget(supervisor) });
    places.set(supervisor, { open, sandboxes: new Set(), inAll: 0, idle: undefined });
  };

  /** Returns the fullest supervisor with room, so that other supervisors become empty and end. */
  const withRoom = (): [SupervisorProcess, Held] | undefined =>
    [...places]
      .filter(([, { sandboxes, inAll }]) => sandboxes.size < mostAtOnce && inAll < mostInAll)
      .sort(([, one], [, other]) => other.sandboxes.size - one.sandboxes.size)[0];

  const leave = (supervisor: SupervisorProcess, sandbox: string): void => {
    const held = places.get(supervisor);
    // A second call must not begin another wait: the first wait would end the supervisor of a sandbox that arrived meanwhile.
    if (held === undefined || !held.sandboxes.delete(sandbox) || held.sandboxes.size > 0) return;
    if (held.inAll >= mostInAll) end(supervisor);
    else held.idle = setTimeout(() => end(supervisor), idleMs).unref();
  };

  return {
    async take(sandbox) {
      for (;;) {
        const found = withRoom();
        if (found !== undefined) {
          const [supervisor, held] = found;
          clearTimeout(held.idle);
          held.sandboxes.add(sandbox);
          held.inAll += 1;
          const { id, process } = supervisor;
          return { id, process, lines: held.open(sandbox), leave: () => leave(supervisor, sandbox) };
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
