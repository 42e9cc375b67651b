import { EventEmitter } from 'node:events';
import type { Database } from '../../platform/store/database/database.ts';

/** Channel of notices about new work; the payload is the name of the pool. */
export const queueChannel = 'runyard_queue';

/** Channel of notices about state changes and events; the payload is the run's id. */
export const runChannel = 'runyard_runs';

/**
 * Receives the notices of all service processes over NOTIFY. A notice only says that there may be a change: the listener reads the change
 * from the tables.
 */
export interface Notices {
  /** Calls `listener` when the run changed, or when notices may have been missed. Returns a function that ends these calls. */
  onRun(runId: string, listener: () => void): () => void;
  /** Calls `listener` with the id of each run that changed, and with `null` if notices were missed, so any run may have changed. */
  onAnyRun(listener: (runId: string | null) => void): () => void;
  /** Calls `listener` when there may be new work to assign. */
  onQueue(listener: () => void): () => void;
}

/** Listens on the database until `db` is closed. */
export async function openNotices(db: Database): Promise<Notices> {
  const perRun = new EventEmitter().setMaxListeners(0);
  const broadcast = new EventEmitter().setMaxListeners(0);
  await db.listen(
    runChannel,
    (runId) => {
      perRun.emit(runId);
      broadcast.emit('run', runId);
    },
    () => {
      for (const runId of perRun.eventNames()) perRun.emit(runId);
      broadcast.emit('run', null);
    },
  );
  await db.listen(
    queueChannel,
    () => broadcast.emit('queue'),
    () => broadcast.emit('queue'),
  );
  const subscribe = (emitter: EventEmitter, name: string, listener: (...args: never[]) => void) => {
    const wrapped = listener as (...args: unknown[]) => void;
    emitter.on(name, wrapped);
    return () => void emitter.off(name, wrapped);
  };
  return {
    onRun: (runId, listener) => subscribe(perRun, runId, listener),
    onAnyRun: (listener) => subscribe(broadcast, 'run', listener),
    onQueue: (listener) => subscribe(broadcast, 'queue', listener),
  };
}
