/**
 * Writes deliveries that arrive together in one transaction, because a commit, a lock and a round trip to the database cost more than
 * one more row.
 */
import { untilArrived } from '../../../platform/store/database/batched.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { workForAll } from '../../../platform/store/database/shares.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import {
  type CheckedDelivery,
  insertAll,
  type NotWritten,
  type Written,
} from '../../webhooks/ingest/write-deliveries.ts';
import { type StartDeliveries, writeStarting } from './start-deliveries.ts';

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
export type DeliveryWriter = (delivery: CheckedDelivery) => Promise<Written | NotWritten | 'busy'>;

/**
 * How many batches of one team with deliveries that may start runs are written at the same time. While one batch waits for the disk,
 * the other uses the processors.
 */
const startingAtOnce = 2;
/**
 * How many batches of other deliveries are written at the same time. Only one, because a second batch would wait for webhooks
 * that the first has locked.
 */
const writingAtOnce = 1;
/**
 * A second batch is written at the same time only if at least this many deliveries wait, because two small batches take longer than
 * one large batch.
 */
const minBeside = 16;
/** Limits of one batch: number of deliveries, and bytes of their bodies. */
const maxDeliveries = 64;
const maxBytes = 1024 * 1024;
/**
 * Largest number of deliveries that wait for a batch. Deliveries that may start runs are counted for each team, and all other
 * deliveries for all teams together.
 */
const maxWaiting = 512;

interface Waiting<Result> {
  readonly delivery: CheckedDelivery;
  readonly resolve: (result: Result | 'busy') => void;
  readonly reject: (error: unknown) => void;
}

type Write<Result> = (deliveries: readonly CheckedDelivery[]) => Promise<readonly (Result | undefined)[]>;

/** Takes the first deliveries that fit into one batch, but at least one. */
function takeBatch<Result>(waiting: Waiting<Result>[]): Waiting<Result>[] {
  let bytes = 0;
  const end = waiting.findIndex(({ delivery }, index) => {
    bytes += delivery.body.length;
    return index > 0 && (index >= maxDeliveries || bytes > maxBytes);
  });
  return waiting.splice(0, end === -1 ? waiting.length : end);
}

/**
 * Creates a queue that writes deliveries in batches. A batch begins when the process has handled all requests that have arrived, and
 * `gate` has a free place. If a batch fails, its deliveries are written one by one, so that only the bad delivery fails.
 */
function makeQueue<Result>(gate: Gate, atOnce: number, write: Write<Result>, onEmpty: () => void) {
  const waiting: Waiting<Result>[] = [];
  let writing = 0;

  const writeBatch = async (batch: readonly Waiting<Result>[]): Promise<void> => {
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
  const mayWrite = (): boolean => waiting.length > 0 && (writing === 1 || waiting.length >= minBeside);
  const drain = async (): Promise<void> => {
    while (mayWrite()) {
      await untilArrived(() => waiting.length, maxDeliveries);
      // Check again, because another batch may have taken the deliveries while this loop waited.
      if (!mayWrite()) break;
      if ((await gate(async () => writeBatch(takeBatch(waiting)))) === 'busy')
        for (const each of waiting.splice(0)) each.resolve('busy');
    }
    writing -= 1;
    if (writing === 0) onEmpty();
  };

  return (delivery: CheckedDelivery): Promise<Result | 'busy'> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        resolve('busy');
        return;
      }
      waiting.push({ delivery, resolve, reject });
      if (writing >= atOnce || (writing > 0 && waiting.length < minBeside)) return;
      writing += 1;
      void workForAll(drain);
    });
}

/**
 * Creates the delivery writer of a process. Duplicates, and deliveries of webhooks that no automation reads, need only one statement.
 * Deliveries that may start runs have a queue for each team, so that no team waits for the runs of another team. They must pass two
 * gates: `startingGate` allows them fewer connections than `gate` allows for all deliveries.
 */
export function makeDeliveryWriter(
  db: Database,
  startDeliveries: StartDeliveries,
  { gate, startingGate }: { readonly gate: Gate; readonly startingGate: Gate },
): DeliveryWriter {
  const writeOnly = makeQueue(
    gate,
    writingAtOnce,
    (deliveries) => insertAll(db, deliveries),
    () => undefined,
  );
  const starting = new Map<string, DeliveryWriter>();
  const startingOf = (teamId: string): DeliveryWriter => {
    const known = starting.get(teamId);
    if (known) return known;
    const made = makeQueue(
      async (work) => await startingGate(async () => await gate(work)),
      startingAtOnce,
      (deliveries) => db.transaction((tx) => writeStarting(tx, startDeliveries, deliveries)),
      () => starting.delete(teamId),
    );
    starting.set(teamId, made);
    return made;
  };
  return async (delivery) => {
    const { teamId, hints } = delivery.webhook;
    if (!hints.feedsAutomations || delivery.startsNothing) {
      const written = await writeOnly(delivery);
      if (written === 'busy' || written.kind !== 'held') return written;
    }
    return await startingOf(teamId)(delivery);
  };
}
