/**
 * Limits the memory of request bodies while the bodies arrive and while their requests are handled. There are limits for each run
 * token, for each team, and in total.
 */

export interface BodyOwner {
  /** Undefined: the sender has no key. All senders without a key count as one team with a small limit. */
  readonly teamId: string | undefined;
  /** Set if the sender uses a run token; absent if it uses an API key of the team. */
  readonly executionId?: string | undefined;
}

/**
 * Limits, in bytes, of the memory that bodies may hold. A body that is larger than a limit is accepted while no other body counts
 * against that limit.
 */
export interface BodyRoom {
  readonly total: number;
  /** Bytes that are reserved for each team. Bytes of a team beyond this share count against `common`. Default: 0. */
  readonly share?: number;
  /**
   * Bytes that all teams together may hold beyond their shares. The difference to `total` is reserved for shares, so several teams can
   * use their shares at the same time. Default: `total`.
   */
  readonly common?: number;
  readonly perTeam: number;
  /** Limit for all senders without a key together. Default: `perTeam`. */
  readonly keyless?: number;
  readonly perExecution: number;
}

export interface BodyLimits {
  /** Bodies of up to `smallBytes` have separate limits, so that a small request, for example a cancel, does not wait for uploads. */
  readonly smallBytes: number;
  readonly small: BodyRoom;
  readonly large: BodyRoom;
  /** Largest number of requests with a body that one execution may have in progress. */
  readonly requestsPerExecution: number;
  /** Largest number of requests of one team that may wait for memory. The same number applies to one execution. */
  readonly waiting: number;
  /** Longest time that a request waits for memory, milliseconds. */
  readonly waitMs: number;
}

const kb = 1024;
const mb = 1024 * kb;

/**
 * The largest possible body is that of a request that creates a run with attachments: 64 MB with an API key, 16 MB with a run token.
 * With these limits, sixteen teams can use their shares at the same time.
 */
export const defaultBodyLimits: BodyLimits = {
  smallBytes: 64 * kb,
  small: { total: 16 * mb, share: 256 * kb, common: 12 * mb, perTeam: 8 * mb, keyless: 256 * kb, perExecution: mb },
  large: { total: 96 * mb, share: 2 * mb, common: 64 * mb, perTeam: 40 * mb, keyless: 2 * mb, perExecution: 20 * mb },
  requestsPerExecution: 32,
  waiting: 128,
  waitMs: 20_000,
};

/** The memory that a request has taken from the budget for its body. */
export interface Place {
  /** Releases the bytes, but the request still counts as a request in progress. */
  releaseBytes(): void;
  /** Releases the bytes and ends the request. A second call does nothing. */
  release(): void;
}

export interface BodyBudget {
  /** Takes memory at once. Returns undefined if there is not enough memory now or if earlier requests wait. */
  tryEnter(owner: BodyOwner, bytes: number): Place | undefined;
  /**
   * Resolves when there is memory for `bytes`. Until then the caller does not read the body, so the sender of the body waits. `busy`:
   * too many requests wait, or this request waited too long. `gone`: `signal` was aborted.
   */
  enter(owner: BodyOwner, bytes: number, signal: AbortSignal): Promise<Place | 'busy' | 'gone'>;
}

/** The smallest number of bytes that a request takes, because a request needs memory even for an empty body. */
const minBytes = kb;

/** Makes a budget. Each service process has one budget for request bodies and one budget for the conversations that it reads. */
export function makeBodyBudget(limits: BodyLimits = defaultBodyLimits): BodyBudget {
  const small = makeRoom(limits, limits.small);
  const large = makeRoom(limits, limits.large);
  const roomFor = (bytes: number) => (bytes <= limits.smallBytes ? small : large);
  return {
    tryEnter: (owner, bytes) => roomFor(bytes).tryEnter(owner, Math.max(bytes, minBytes)),
    enter: (owner, bytes, signal) => roomFor(bytes).enter(owner, Math.max(bytes, minBytes), signal),
  };
}

interface Waiting {
  readonly owner: BodyOwner;
  readonly bytes: number;
  readonly admit: () => void;
}

function makeRoom(limits: BodyLimits, room: BodyRoom): BodyBudget {
  const { share = 0, common = room.total, keyless = room.perTeam } = room;
  const teams = holders();
  const executions = holders();
  const queue = new Set<Waiting>();
  let total = 0;
  let inCommon = 0;

  const keyOf = ({ teamId }: BodyOwner): string => (teamId === undefined ? 'keyless' : `team ${teamId}`);
  const beyondShare = (bytes: number): number => Math.max(0, bytes - share);
  const change = (owner: BodyOwner, by: Partial<Held>): void => {
    const before = teams.of(keyOf(owner)).bytes;
    total += by.bytes ?? 0;
    inCommon += beyondShare(before + (by.bytes ?? 0)) - beyondShare(before);
    teams.change(keyOf(owner), by);
    if (owner.executionId !== undefined) executions.change(owner.executionId, by);
  };
  const fits = (held: number, bytes: number, most: number): boolean => held === 0 || held + bytes <= most;
  /** Returns how many bytes of a new body would exceed the share of its team. */
  const commonOf = (owner: BodyOwner, bytes: number): number => {
    const bytesNow = teams.of(keyOf(owner)).bytes;
    return beyondShare(bytesNow + bytes) - beyondShare(bytesNow);
  };
  const roomHas = (owner: BodyOwner, bytes: number): boolean => {
    const beyond = commonOf(owner, bytes);
    return fits(total, bytes, room.total) && (beyond === 0 || fits(inCommon, beyond, common));
  };
  const ownerHasRoom = (owner: BodyOwner, bytes: number): boolean => {
    const { teamId, executionId } = owner;
    if (!fits(teams.of(keyOf(owner)).bytes, bytes, teamId === undefined ? keyless : room.perTeam)) return false;
    if (executionId === undefined) return true;
    const own = executions.of(executionId);
    return own.requests < limits.requestsPerExecution && fits(own.bytes, bytes, room.perExecution);
  };
  const take = (owner: BodyOwner, bytes: number): Place => {
    change(owner, { bytes, requests: 1 });
    let heldBytes = bytes;
    let requests = 1;
    const giveBack = (by: { bytes: number; requests: number }): void => {
      heldBytes -= by.bytes;
      requests -= by.requests;
      change(owner, { bytes: -by.bytes, requests: -by.requests });
      admitWaiting();
    };
    return {
      releaseBytes: () => giveBack({ bytes: heldBytes, requests: 0 }),
      release: () => giveBack({ bytes: heldBytes, requests }),
    };
  };
  /** Returns true if a request waits for the common memory, and not only for its owner's limit. */
  const waitsForRoom = ({ owner, bytes }: Waiting): boolean => ownerHasRoom(owner, bytes) && !roomHas(owner, bytes);
  /**
   * Requests get memory in the order of arrival. A request that waits for the limit of its owner does not delay other owners. A request that
   * waits for the common memory delays later requests that also need it; otherwise a large request could wait forever. A request within the
   * share of its team is not delayed.
   */
  const admitWaiting = (): void => {
    let isFull = false;
    for (const waiting of queue) {
      const { owner, bytes, admit } = waiting;
      if (waitsForRoom(waiting)) isFull = true;
      else if (ownerHasRoom(owner, bytes) && !(isFull && commonOf(owner, bytes) > 0)) admit();
    }
  };

  const tryEnter: BodyBudget['tryEnter'] = (owner, bytes) => {
    if (queue.size > 0 && isBehind(owner, bytes)) return undefined;
    return roomHas(owner, bytes) && ownerHasRoom(owner, bytes) ? take(owner, bytes) : undefined;
  };

  const enter: BodyBudget['enter'] = async (owner, bytes, signal) => {
    if (signal.aborted) return 'gone';
    const place = tryEnter(owner, bytes);
    if (place) return place;
    const own = owner.executionId === undefined ? teams.of(keyOf(owner)) : executions.of(owner.executionId);
    if (own.waiting >= limits.waiting) return 'busy';
    return await new Promise<Place | 'busy' | 'gone'>((resolve) => {
      const leave = (): void => {
        queue.delete(waiting);
        change(owner, { waiting: -1 });
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      };
      const waiting: Waiting = {
        owner,
        bytes,
        admit: () => {
          leave();
          resolve(take(owner, bytes));
        },
      };
      const abort = (): void => {
        leave();
        resolve('gone');
        admitWaiting();
      };
      const timer = setTimeout(() => {
        leave();
        resolve('busy');
        admitWaiting();
      }, limits.waitMs);
      signal.addEventListener('abort', abort, { once: true });
      queue.add(waiting);
      change(owner, { waiting: 1 });
    });
  };
  return { tryEnter, enter };

  /**
   * Returns whether a request would overtake an earlier request of its owner, or an earlier request that also waits for the common memory.
   */
  function isBehind(owner: BodyOwner, bytes: number): boolean {
    for (const waiting of queue) {
      if (commonOf(owner, bytes) > 0 && waitsForRoom(waiting)) return true;
      if (waiting.owner.executionId === owner.executionId && waiting.owner.teamId === owner.teamId) return true;
    }
    return false;
  }
}

/** The memory and the requests of one team or one execution. */
interface Held {
  bytes: number;
  requests: number;
  /** Number of requests that wait for memory. */
  waiting: number;
}

/** Makes a table of the memory and requests of each owner. The owners are all teams or all executions. An owner without requests is removed. */
function holders() {
  const entries = new Map<string, Held>();
  const none: Readonly<Held> = { bytes: 0, requests: 0, waiting: 0 };
  return {
    of: (id: string): Readonly<Held> => entries.get(id) ?? none,
    change: (id: string, by: Partial<Held>): void => {
      const now = entries.get(id) ?? { ...none };
      now.bytes += by.bytes ?? 0;
      now.requests += by.requests ?? 0;
      now.waiting += by.waiting ?? 0;
      if (now.requests === 0 && now.waiting === 0) entries.delete(id);
      else entries.set(id, now);
    },
  };
}
