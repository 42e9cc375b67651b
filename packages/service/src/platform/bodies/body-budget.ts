/** Bounds the memory of request bodies while they arrive and are handled: for a run token, for a team, and in total. */

/** The owner of a body. */
export interface BodyOwner {
  readonly teamId: string;
  /** Set for a run token; absent for an API key of the team. */
  readonly executionId?: string | undefined;
}

/** Bytes that bodies may hold. A body larger than a bound is accepted while no other body counts against it. */
export interface BodyRoom {
  readonly total: number;
  readonly perTeam: number;
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

/** The largest body (a run with its attachments) has 64 MB, the largest of a run token 16 MB. */
export const defaultBodyLimits: BodyLimits = {
  smallBytes: 64 * kb,
  small: { total: 16 * mb, perTeam: 12 * mb, perExecution: mb },
  large: { total: 96 * mb, perTeam: 64 * mb, perExecution: 20 * mb },
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
  /** Takes room at once; undefined: there is no room now, or earlier requests wait. */
  tryEnter(owner: BodyOwner, bytes: number): Place | undefined;
  /**
   * Resolves when there is room for `bytes`. Until then the caller does not read the body, so its sender waits. `busy`:
   * too many requests wait, or the wait was too long. `gone`: `signal` was aborted.
   */
  enter(owner: BodyOwner, bytes: number, signal: AbortSignal): Promise<Place | 'busy' | 'gone'>;
}

/** Memory that each request costs besides its body. */
const minBytes = kb;

interface Held {
  bytes: number;
  requests: number;
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
  const teams = holders();
  const executions = holders();
  const queue = new Set<Waiting>();
  let total = 0;

  const change = ({ teamId, executionId }: BodyOwner, by: Partial<Held>): void => {
    total += by.bytes ?? 0;
    teams.change(teamId, by);
    if (executionId !== undefined) executions.change(executionId, by);
  };
  const fits = (held: number, bytes: number, most: number): boolean => held === 0 || held + bytes <= most;
  const ownerHasRoom = ({ teamId, executionId }: BodyOwner, bytes: number): boolean => {
    if (!fits(teams.of(teamId).bytes, bytes, room.perTeam)) return false;
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
  /**
   * Requests get room in the order of arrival. A request that waits for the room of its owner does not delay others. A
   * request that waits for the total room does, otherwise a large one could wait forever.
   */
  const admitWaiting = (): void => {
    for (const waiting of queue) {
      if (!fits(total, waiting.bytes, room.total)) return;
      if (ownerHasRoom(waiting.owner, waiting.bytes)) waiting.admit();
    }
  };

  const tryEnter: BodyBudget['tryEnter'] = (owner, bytes) => {
    if (queue.size > 0 && isBehind(owner)) return undefined;
    return fits(total, bytes, room.total) && ownerHasRoom(owner, bytes) ? take(owner, bytes) : undefined;
  };

  const enter: BodyBudget['enter'] = async (owner, bytes, signal) => {
    if (signal.aborted) return 'gone';
    const place = tryEnter(owner, bytes);
    if (place) return place;
    const own = owner.executionId === undefined ? teams.of(owner.teamId) : executions.of(owner.executionId);
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

  /** Returns whether a request would overtake an earlier one of the same owner, or one that waits for the total. */
  function isBehind(owner: BodyOwner): boolean {
    for (const waiting of queue) {
      if (!fits(total, waiting.bytes, room.total)) return true;
      if (waiting.owner.executionId === owner.executionId && waiting.owner.teamId === owner.teamId) return true;
    }
    return false;
  }
}
