/**
 * Limits how many repositories this process reads at the same time, in total and for each team. Also makes reads of the same repository
 * run one after another.
 */

export interface GateLimits {
  readonly total: number;
  readonly perTeam: number;
  /** Maximum number of waiting calls of a team. */
  readonly waitingPerTeam: number;
  /** Maximum time that a call waits, in milliseconds. */
  readonly waitMs: number;
}

export interface Gate {
  /**
   * Executes `work` when the limits allow it. Returns `busy`, and does not execute `work`, if too many calls of the team wait or this call
   * waited too long.
   */
  run<T>(place: GatePlace, work: () => Promise<T>): Promise<T | 'busy'>;
}

export interface GatePlace {
  readonly teamId: string;
  /** Calls with the same key are executed one after another. */
  readonly key: string;
}

interface Waiter extends GatePlace {
  readonly enter: () => void;
}

export function makeGate(limits: GateLimits): Gate {
  const working = new Set<GatePlace>();
  let waiting: Waiter[] = [];

  const countOf = (places: Iterable<GatePlace>, teamId: string): number =>
    [...places].filter((place) => place.teamId === teamId).length;

  const mayEnter = ({ teamId, key }: GatePlace): boolean =>
    working.size < limits.total &&
    countOf(working, teamId) < limits.perTeam &&
    ![...working].some((place) => place.key === key);

  /** Starts the first waiting call that may run. A team that waits for its own earlier reads does not delay other teams. */
  function admit(): void {
    const next = waiting.find(mayEnter);
    if (next === undefined) return;
    waiting = waiting.filter((each) => each !== next);
    working.add(next);
    next.enter();
    admit();
  }

  function turnOf(place: GatePlace): Promise<GatePlace | 'busy'> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        ...place,
        enter: () => {
          clearTimeout(timer);
          resolve(waiter);
        },
      };
      const timer = setTimeout(() => {
        waiting = waiting.filter((each) => each !== waiter);
        resolve('busy');
      }, limits.waitMs);
      waiting.push(waiter);
      admit();
    });
  }

  return {
    run: async (place, work) => {
      if (countOf(waiting, place.teamId) >= limits.waitingPerTeam) return 'busy';
      const turn = await turnOf(place);
      if (turn === 'busy') return 'busy';
      try {
        return await work();
      } finally {
        working.delete(turn);
        admit();
      }
    },
  };
}
