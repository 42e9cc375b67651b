/** Bounds the memory of request bodies while they arrive and are handled: for a run token, for a team, and in total. */

/** The owner of a body. */
export interface BodyOwner {
  /** Undefined: a sender without a key. All senders without a key count as one team with a small limit. */
  readonly teamId: string | undefined;
  /** Set for a run token; absent for an API key of the team. */
  readonly executionId?: string | undefined;
}

/** Bytes that bodies may hold. A body larger than a bound is accepted while no other body counts against that bound. */
export interface BodyRoom {
  readonly total: number;
  /** Bytes that are reserved for each team. The bytes of all teams beyond their shares count against `common`. Default: 0. */
  readonly share?: number;
  /** Default: `total`. The rest of `total` is reserved for shares, so that several teams can use their shares at the same time. */
  readonly common?: number;
  readonly perTeam: number;
  /** For all senders without a key together. Default: `perTeam`. */
  readonly keyless?: number;
  readonly perExecution: number;
}

export interface BodyLimits {
  /** Bodies of up to `smallBytes` have bounds of their own, so that a cancel does not wait behind uploads. */
  readonly smallBytes: number;
  readonly small: BodyRoom;
  readonly large: BodyRoom;
  /** Requests with a body that one execution may have in flight. */
  readonly requestsPerExecution: number;
  /** Requests of a team, or of an execution, that may wait for room. */
  readonly waiting: number;
  /** How long a request waits, milliseconds. */
  readonly waitMs: number;
}

const kb = 1024;
const mb = 1024 * kb;

/** The largest body is a run with its attachments: 64 MB, or 16 MB with a run token. Sixteen teams can use their shares at the same time. */
export const defaultBodyLimits: BodyLimits = {
  smallBytes: 64 * kb,
  small: { total: 16 * mb, share: 256 * kb, common: 12 * mb, perTeam: 8 * mb, keyless: 256 * kb, perExecution: mb },
  large: { total: 96 * mb, share: 2 * mb, common: 64 * mb, perTeam: 40 * mb, keyless: 2 * mb, perExecution: 20 * mb },
  requestsPerExecution: 32,
  waiting: 128,
  waitMs: 20_000,
};

/** The room of a body. */
export interface Place {
  /** Releases the bytes while the request continues without them. */
  releaseBytes(): void;
  /** Releases all bytes. A second call does nothing. */
  release(): void;
}

export interface BodyBudget {
  /** Takes memory at once. Returns undefined if there is not enough memory now or if earlier requests wait. */
  tryEnter(owner: BodyOwner, bytes: number): Place | undefined;
  /**
   * Resolves when there is room for `bytes`. Until then the caller does not read the body, so its sender waits. `busy`:
   * too many requests wait, or the wait was too long. `gone`: `signal` was aborted.
   */
  enter(owner: BodyOwner, bytes: number, signal: AbortSignal): Promise<Place | 'busy' | 'gone'>;
}

/** Memory that each request costs besides its body. */
const minBytes = kb;

/** Makes a budget. Each service process has one for bodies and one for conversations that are read. */
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
  /** Returns the bytes of a body that exceed its team's share. */
  const commonOf = (owner: BodyOwner, bytes: number): number => {
    const held = teams.of(keyOf(owner)).bytes;
    return beyondShare(held + bytes) - beyondShare(held);
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
    let held = bytes;
    let requests = 1;
    const giveBack = (by: { bytes: number; requests: number }): void => {
      held -= by.bytes;
      requests -= by.requests;
      change(owner, { bytes: -by.bytes, requests: -by.requests });
      admitWaiting();
    };
    return {
      releaseBytes: () => giveBack({ bytes: held, requests: 0 }),
      release: () => giveBack({ bytes: held, requests }),
    };
  };
  /** Returns true if a request waits for the common memory, and not only for its owner's limit. */
  const waitsForRoom = ({ owner, bytes }: Waiting): boolean => ownerHasRoom(owner, bytes) && !roomHas(owner, bytes);
  /**
   * Requests get room in the order of arrival. A request that waits for the limit of its owner does not delay other owners. A request that
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

/** The bodies that an owner holds. */
interface Held {
  bytes: number;
  requests: number;
  /** Requests that wait for room. */
  waiting: number;
}

/** The room that each owner of one kind (team, execution) holds. Owners without room are removed. */
function holders() {
  const held = new Map<string, Held>();
  const none: Readonly<Held> = { bytes: 0, requests: 0, waiting: 0 };
  return {
    of: (id: string): Readonly<Held> => held.get(id) ?? none,
    change: (id: string, by: Partial<Held>): void => {
      const now = held.get(id) ?? { ...none };
      now.bytes += by.bytes ?? 0;
      now.requests += by.requests ?? 0;
      now.waiting += by.waiting ?? 0;
      if (now.requests === 0 && now.waiting === 0) held.delete(id);
      else held.set(id, now);
    },
  };
}
