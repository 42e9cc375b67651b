/** Limits how much work the messages of workers cause, by the team of their key and by the owner of the key. */
import { setTimeout as delay } from 'node:timers/promises';

/** Cost that a team may spend in a second. One unit is one byte of a message. */
const perSecond = 1024 * 1024;
/** Cost that a team may spend at once after a pause. */
const burst = 4 * 1024 * 1024;
const burstMs = (burst / perSecond) * 1000;
/** Cost of each execution that a message lists, because the service looks up each of them and may answer with an order. */
export const costOfListed = 512;

/** The callers whose budgets a message uses. */
export interface Payer {
  readonly team: string;
  /** Owner of the key. */
  readonly caller: string;
}

/**
 * Returns who pays for the messages of a connection. `poolTeam`: team of its pool; null: the hosted pool. This pool has a budget of its
 * own: its key belongs to the operator's team, and other workers of that team must not delay the runs of all teams.
 */
export const payerOf = (
  {
    teamId,
    keyId,
    creator,
  }: { readonly teamId: string; readonly keyId: string; readonly creator: { readonly uid: string } },
  poolTeam: string | null,
): Payer => (poolTeam === null ? { team: 'hosted', caller: keyId } : { team: teamId, caller: creator.uid });

export interface MessageBudget {
  /**
   * Spends a cost of the caller and of the team. Resolves when both have paid for their earlier messages, so the costs of a message count for
   * the next ones. One caller has half of the rate of a team, so the others of the team never wait for this caller's messages.
   */
  spend(payer: Payer, cost: number): Promise<void>;
}

/** Makes a budget. Each service process has one. `now` returns milliseconds of a clock that never goes back. */
export function makeMessageBudget(
  now = () => performance.now(),
  wait: (ms: number) => Promise<unknown> = delay,
): MessageBudget {
  const callers = makeLedger(1 / 2);
  const teams = makeLedger(1);
  const pay = async (ledger: Ledger, key: string, cost: number): Promise<void> => {
    const ms = ledger.pay(key, cost, now());
    if (ms > 0) await wait(ms);
  };
  return {
    async spend({ team, caller }, cost) {
      await pay(callers, `${team} ${caller}`, cost);
      await pay(teams, team, cost);
    },
  };
}

interface Ledger {
  /** Returns the milliseconds until the earlier costs of the key are paid at the time `at`, and adds a cost to them. */
  pay(key: string, cost: number, at: number): number;
}

/** Makes a ledger in which each key has a part of the rate and of the burst of a team. */
function makeLedger(part: number): Ledger {
  /** The time at which each key will have paid for its messages. */
  const paidAt = new Map<string, number>();
  return {
    pay(key, cost, at) {
      const leastPaid = at - burstMs;
      // Remove the entries of keys that may again spend a whole burst. The map is in the order of the keys' last messages.
      for (const [each, paid] of paidAt) {
        if (paid > leastPaid) break;
        paidAt.delete(each);
      }
      const begin = Math.max(paidAt.get(key) ?? leastPaid, leastPaid);
      paidAt.delete(key);
      paidAt.set(key, begin + (cost / (part * perSecond)) * 1000);
      return begin - at;
    },
  };
}
