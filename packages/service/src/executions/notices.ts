import { EventEmitter } from 'node:events';
import type { Database } from '../store/database/database.ts';
import { queueChannel, runChannel } from './channels.ts';

/** What other processes (and this one) told over NOTIFY. Always a hint: whoever listens reads the tables. */
export interface Notices {
  /** Calls `listener` whenever the run changed, and when notices may have been missed. Returns the way to stop it. */
  onRun(runId: string, listener: () => void): () => void;
  /** Calls `listener` with the id of every run that changed; `null`: any may have, notices were missed. */
  onAnyRun(listener: (runId: string | null) => void): () => void;
  /** Calls `listener` whenever there may be new work to assign. */
  onQueue(listener: () => void): () => void;
}

/** Listens on the database for the life of `db`. */
export async function openNotices(db: Database): Promise<Notices> {
  const perRun = new EventEmitter().setMaxListeners(0);
  const all = new EventEmitter().setMaxListeners(0);
  await db.listen(
    runChannel,
    (runId) => {
      perRun.emit(runId);
      all.emit('run', runId);
    },
    () => {
      for (const runId of perRun.eventNames()) perRun.emit(runId);
      all.emit('run', null);
    },
  );
  await db.listen(
    queueChannel,
    () => all.emit('queue'),
    () => all.emit('queue'),
  );
  const subscribe = (emitter: EventEmitter, name: string, listener: (...args: never[]) => void) => {
    const wrapped = listener as (...args: unknown[]) => void;
    emitter.on(name, wrapped);
    return () => void emitter.off(name, wrapped);
  };
  return {
    onRun: (runId, listener) => subscribe(perRun, runId, listener),
    onAnyRun: (listener) => subscribe(all, 'run', listener),
    onQueue: (listener) => subscribe(all, 'queue', listener),
  };
}
