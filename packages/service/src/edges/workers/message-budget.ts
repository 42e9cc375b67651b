/** Limits how much work the messages of workers cause, by the team of their key. */
import { setTimeout as delay } from 'node:timers/promises';

/** Cost that a team may spend in a second. One unit is one byte of a message. */
const perSecond = 1024 * 1024;
/** Cost that a team may spend at once after a pause. */
const burst = 4 * 1024 * 1024;
const burstMs = (burst / perSecond) * 1000;
/** Cost of each execution that a message lists, because the service looks up each of them and may answer with an order. */
export const costOfListed = 512;

export interface MessageBudget {
  /** Spends a cost of the team. Resolves when the team has paid for its earlier messages, so the costs of a message count for the next ones. */
  spend(team: string, cost: number): Promise<void>;
}

/** Makes a budget. Each service process has one. `now` returns milliseconds of a clock that never goes back. */
export function makeMessageBudget(
  now = () => performance.now(),
  wait: (ms: number) => Promise<unknown> = delay,
): MessageBudget {
  /** The time at which each team will have paid for its messages. */
  const paidAt = new Map<string, number>();
  return {
    async spend(team, cost) {
      const at = now();
      const leastPaid = at - burstMs;
      // A team that has the whole burst again needs no entry. The teams are in the order of their last messages.
      for (const [each, paid] of paidAt) {
        if (paid > leastPaid) break;
        paidAt.delete(each);
      }
      const begin = Math.max(paidAt.get(team) ?? leastPaid, leastPaid);
      paidAt.delete(team);
      paidAt.set(team, begin + (cost / perSecond) * 1000);
      if (begin > at) await wait(begin - at);
    },
  };
}
