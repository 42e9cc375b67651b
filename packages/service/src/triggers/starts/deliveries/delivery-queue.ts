/**
 * Writes deliveries that arrive together in one transaction, because a commit, a lock and a round trip to the database cost more than
 * one more row.
 */
import { untilArrived } from '../../../platform/store/database/batched.ts';
import { workForAll } from '../../../platform/store/database/shares.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import type { CheckedDelivery, Written } from '../../webhooks/ingest/take-deliveries.ts';

/**
 * Limits how many database connections the ingress uses, so that a flood of deliveries leaves connections for other work. Runs `work`
 * when fewer than the allowed number of calls are in progress. `busy`: too many calls already wait.
 */
export type Gate = <T>(work: () => Promise<T>) => Promise<T | 'busy'>;

/** Creates a gate. It runs `concurrent` calls at a time, in the order in which they came, and lets at most `waiting` calls wait. */
export function makeGate({ concurrent, waiting }: { readonly concurrent: number; readonly waiting: number }): Gate {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (running >= concurrent) {
      if (queue.length >= waiting) return 'busy';
      // The call that ends passes its place on to the first waiting call, so `running` does not change.
      await new Promise<void>((resolve) => queue.push(resolve));
    } else running += 1;
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** Writes a delivery, and resolves when the transaction has committed. `busy`: too many deliveries already wait. */
export type DeliveryWriter = (delivery: CheckedDelivery) => Promise<Written | 'busy'>;

/** How many batches of one team are written at the same time. While one batch waits for the disk, the other uses the processors. */
const atOnce = 2;
/** Limits of one batch: number of deliveries, and bytes of their bodies. */
const maxDeliveries = 64;
const maxBytes = 1024 * 1024;
/** Largest number of deliveries of one team that wait for a batch. */
const maxWaiting = 512;

interface Waiting {
  readonly delivery: CheckedDelivery;
  readonly resolve: (result: Written | 'busy') => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates the delivery writer of a process. Each team has a queue, so that no team waits for the runs of another team. A batch begins
 * when the process has handled all requests that have arrived, and `gate` has a free place. It leaves out the deliveries of webhooks that
 * another batch is writing, because it would wait for that batch. If `write` fails for a batch, the deliveries are written one by one, so
 * that only the bad delivery fails.
 */
export function makeDeliveryWriter(
  write: (deliveries: readonly CheckedDelivery[]) => Promise<readonly Written[]>,
  gate: Gate,
): DeliveryWriter {
  const writeBatch = async (batch: readonly Waiting[]): Promise<void> => {
    if (batch.length === 0) return;
    try {
      const results = await write(batch.map(({ delivery }) => delivery));
      for (const [index, each] of batch.entries()) {
        const result = results[index];
        if (result === undefined) each.reject(new Error('a delivery of a batch has no result'));
        else each.resolve(result);
      }
    } catch (error) {
      if (batch.length === 1 || error instanceof StoreUnavailable) for (const each of batch) each.reject(error);
      else for (const each of batch) await writeBatch([each]);
    }
  };

  const makeQueue = (onEmpty: () => void): DeliveryWriter => {
    const waiting = new Set<Waiting>();
    /** The webhooks whose deliveries are being written. */
    const busy = new Set<string>();
    let writing = 0;
    const ready = () => [...waiting].filter(({ delivery }) => !busy.has(delivery.webhook.uid));
    /** Takes the first deliveries that fit into one batch, but at least one if there is one. */
    const takeBatch = (): Waiting[] => {
      let bytes = 0;
      const all = ready();
      const end = all.findIndex(({ delivery }, index) => {
        bytes += delivery.body.length;
        return index > 0 && (index >= maxDeliveries || bytes > maxBytes);
      });
      const batch = all.slice(0, end === -1 ? all.length : end);
      for (const each of batch) waiting.delete(each);
      return batch;
    };
    const drain = async () => {
      while (ready().length > 0) {
        await untilArrived(() => waiting.size, maxDeliveries);
        const entered = await gate(async () => {
          const batch = takeBatch();
          const webhooks = new Set(batch.map(({ delivery }) => delivery.webhook.uid));
          for (const uid of webhooks) busy.add(uid);
          await writeBatch(batch);
          for (const uid of webhooks) busy.delete(uid);
        });
        if (entered !== 'busy') continue;
        for (const each of waiting) each.resolve('busy');
        waiting.clear();
      }
      writing -= 1;
      if (writing === 0) onEmpty();
    };
    return (delivery) =>
      new Promise((resolve, reject) => {
        if (waiting.size >= maxWaiting) {
          resolve('busy');
          return;
        }
        waiting.add({ delivery, resolve, reject });
        if (writing >= atOnce || ready().length === 0) return;
        writing += 1;
        void workForAll(drain);
      });
  };

  const queues = new Map<string, DeliveryWriter>();
  return async (delivery) => {
    const { teamId } = delivery.webhook;
    const queue = queues.get(teamId) ?? makeQueue(() => queues.delete(teamId));
    queues.set(teamId, queue);
    return await queue(delivery);
  };
}
