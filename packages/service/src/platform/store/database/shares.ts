/** Shares the database connections of a process between teams, so that one team cannot use all of them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { StoreUnavailable } from './unavailable.ts';

/** Longest wait for a connection, as for a connection to a server that does not answer. */
const longestWaitMs = 10_000;

/** For whom a process works. `null` as the team: a caller without a key. */
export interface Caller {
  readonly team: string | null;
  /** A person or identity with all keys and sessions, a run, the workers of an owner, or an address. */
  readonly id: string;
}

/** A caller, or `undefined` for work of the service itself. The value changes when the caller is known, and when the request has ended. */
interface Work {
  caller: Caller | undefined;
  /** True while the work holds a connection. */
  holds: boolean;
}

const works = new AsyncLocalStorage<Work>();

/**
 * Runs `work` for a caller. Returns two functions: `name` names the caller once it is known, and `end` ends the request. Work that
 * continues after the end, such as a timer, is work of the service.
 */
export function workFor(caller: Caller, work: (name: (caller: Caller) => void, end: () => void) => void): void {
  const store: Work = { caller, holds: false };
  const name = (known: Caller): void => {
    store.caller = known;
  };
  const end = (): void => {
    store.caller = undefined;
  };
  works.run(store, () => work(name, end));
}

/** Runs `work` for a caller that is known. Work that continues after its end is work of the service. */
export async function workOf<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
  const store: Work = { caller, holds: false };
  try {
    return await works.run(store, work);
  } finally {
    store.caller = undefined;
  }
}

/** Runs `work` as work of the service, because other callers wait for it too. */
export const workForAll = <T>(work: () => T): T => works.run({ caller: undefined, holds: false }, work);

/** The shares of a pool of connections. */
export interface Shares {
  /**
   * Calls `work` when the caller of the present work may take a connection. Work that already holds a connection never waits, because
   * it could otherwise wait for itself.
   */
  hold<T>(work: () => Promise<T>): Promise<T>;
  /** Number of calls of `hold` that wait. */
  readonly waiting: number;
}

/** A caller that is next. */
interface Waiting {
  readonly key: string;
  readonly holder: Holder;
  readonly id: string;
  readonly caller: CallerOfHolder;
}

interface CallerOfHolder {
  held: number;
  readonly queue: (() => void)[];
}

/** The connections of one team, of all callers without a key, or of the service itself. */
interface Holder {
  /** Number of connections in use. */
  held: number;
  readonly most: number;
  readonly mostOfCaller: number;
  readonly callers: Map<string, CallerOfHolder>;
}

/**
 * Makes the shares of a pool with `connections` connections. A team uses at most three quarters of them, and one caller at most half. All
 * callers without a key use at most half, and an address a quarter. Of the waiting teams, the team with the fewest connections is next, and
 * of its callers the caller with the fewest. So a request waits for one statement of another team, and not for all statements of that team.
 */
export function makeShares(connections: number): Shares {
  const holders = new Map<string, Holder>();
  let held = 0;
  let waiting = 0;

  const part = (of: number): number => Math.max(1, Math.floor(connections * of));
  const holderOf = (caller: Caller | undefined): [string, Holder] => {
    const key = caller === undefined ? 'service' : caller.team === null ? 'keyless' : `team ${caller.team}`;
    const [most, mostOfCaller] =
      caller === undefined
        ? [connections, connections]
        : caller.team === null
          ? [part(1 / 2), part(1 / 4)]
          : [part(3 / 4), part(1 / 2)];
    const known = holders.get(key) ?? { held: 0, most, mostOfCaller, callers: new Map() };
    holders.set(key, known);
    return [key, known];
  };

  /** Lets works begin while connections are free. */
  const admit = (): void => {
    while (waiting > 0 && held < connections) {
      let next: Waiting | undefined;
      for (const [key, holder] of holders) {
        if (holder.held >= holder.most || (next !== undefined && holder.held > next.holder.held)) continue;
        for (const [id, caller] of holder.callers) {
          if (caller.queue.length === 0 || caller.held >= holder.mostOfCaller) continue;
          const isFewer =
            next === undefined ||
            holder.held < next.holder.held ||
            (next.holder === holder && caller.held < next.caller.held);
          if (isFewer) next = { key, holder, id, caller };
        }
      }
      const begin = next?.caller.queue.shift();
      if (next === undefined || begin === undefined) return;
      // Move the team and the caller to the end: among equals, the one that has waited longest is next.
      holders.delete(next.key);
      holders.set(next.key, next.holder);
      next.holder.callers.delete(next.id);
      next.holder.callers.set(next.id, next.caller);
      waiting -= 1;
      held += 1;
      next.holder.held += 1;
      next.caller.held += 1;
      begin();
    }
  };

  /** Resolves when the caller has a connection. Throws `StoreUnavailable` if it waits too long. */
  const take = (own: CallerOfHolder): Promise<void> =>
    new Promise((resolve, reject) => {
      let late: NodeJS.Timeout | undefined;
      const begin = (): void => {
        clearTimeout(late);
        resolve();
      };
      own.queue.push(begin);
      waiting += 1;
      admit();
      if (!own.queue.includes(begin)) return;
      late = setTimeout(() => {
        own.queue.splice(own.queue.indexOf(begin), 1);
        waiting -= 1;
        reject(new StoreUnavailable('database', new Error('no database connection was free in time')));
      }, longestWaitMs);
    });

  return {
    get waiting() {
      return waiting;
    },
    async hold(work) {
      const current = works.getStore();
      if (current?.holds) return await work();
      const caller = current?.caller;
      const id = caller?.id ?? '';
      const [key, holder] = holderOf(caller);
      const own = holder.callers.get(id) ?? { held: 0, queue: [] };
      holder.callers.set(id, own);
      const forget = (): void => {
        if (own.held === 0 && own.queue.length === 0) holder.callers.delete(id);
        if (holder.callers.size === 0) holders.delete(key);
      };
      await take(own).catch((error: unknown) => {
        forget();
        throw error;
      });
      const store: Work = { caller, holds: true };
      try {
        return await works.run(store, work);
      } finally {
        store.caller = undefined;
        store.holds = false;
        held -= 1;
        holder.held -= 1;
        own.held -= 1;
        forget();
        admit();
      }
    },
  };
}
