import { EventEmitter } from 'node:events';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, type RowOf, text, uuid } from '../../platform/store/database/statement.ts';
import { slotPhases } from './phases.ts';

/** Channel of notices about new work; the payload is the name of the pool. */
const queueChannel = 'runyard_queue';

/** Channel of notices about new events and changes that readers of a run see; the payload is the run's id. */
const readersChannel = 'runyard_runs';

/** Channel of notices about messages and orders for the agent of a run and its worker; the payload is the run's id. */
const agentChannel = 'runyard_agents';

/** SQL: the result column that notifies the dispatchers of the pool after the commit (see `platform/store/database/notices.ts`). */
export const tellQueue = (pool: string): string => `${pool} AS ${queueChannel}`;

/**
 * SQL: like `tellQueue`, after the execution `e` has freed a slot. Notifies nobody while no execution of the pool is queued: an execution
 * that is queued later sends a notice itself.
 */
export const tellQueueOfFreed = (e: string): string =>
  tellQueue(`CASE WHEN EXISTS (SELECT FROM executions q WHERE q.is_queued AND q.pool = ${e}.pool) THEN ${e}.pool END`);

/** SQL: the result column that notifies the readers of the run after the commit. */
export const tellReaders = (runId: string): string => `${runId} AS ${readersChannel}`;

/** SQL: the result column that notifies the agent of the run and its worker after the commit. */
export const tellAgent = (runId: string): string => `${runId} AS ${agentChannel}`;

/**
 * Receives the notices of all service processes. A notice only says that there may be a change: the listener reads the change from the
 * tables.
 */
export interface Notices {
  /** Calls `listener` when readers of the run may see a change, or when notices may have been missed. Returns a function that ends these calls. */
  onRun(runId: string, listener: () => void): () => void;
  /** Like `onRun`, for messages and orders for the agent of the run. */
  onAgent(runId: string, listener: () => void): () => void;
  /**
   * Records that the reader of an agent's messages has read the version `version` (`agentVersion`), so that `findLost` does not call it for
   * this version. Calls the other listeners of the run that know another version.
   */
  knowAgent(runId: string, version: string): void;
  /** Calls `listener` with the id of each run that changed, and with `null` if notices were missed, so any run may have changed. */
  onAnyRun(listener: (runId: string | null) => void): () => void;
  /** Like `onAnyRun`, for messages and orders for the agents of runs and their workers. */
  onAnyAgent(listener: (runId: string | null) => void): () => void;
  /** Calls `listener` when there may be new work to assign. */
  onQueue(listener: () => void): () => void;
  /**
   * Calls the listeners of `onRun` and `onAgent` whose runs have changed since the last call. A process may have ended after a commit
   * and before it sent the notices, so this function must be called every second. Sends no statement if there is no such listener.
   */
  findLost(): Promise<void>;
}

/** SQL: the version of the messages and orders for the agent of the execution `e`. */
export const agentVersion = (runId: string, e: string): string => `
  concat_ws(' ', ${e}.id, nullif(${e}.phase IN ${slotPhases}, true), ${e}.stop_reason, ${e}.interrupted_turn,
    CASE WHEN ${e}.awaits_followup THEN 'w' || ${e}.finished_turns END,
    (SELECT 'f' || max(f.position) FROM followups f WHERE f.run_id = ${runId}),
    (SELECT 'h' || max(h.number) FROM held_actions h WHERE h.run_id = ${runId}))`;

/**
 * Finds the runs whose versions differ from the known versions; '' is known of a run that was not read before. The version for readers
 * changes with each change that they see, the version for the agent changes with each message and order. A request for the changed files
 * of a run is in no version: if its notice is lost, the next request repeats it.
 */
const findChanged = defineStatement({
  name: 'find_changed_runs',
  text: `
    SELECT * FROM (
      SELECT w.id, w.readers AS known_readers, w.agent AS known_agent, coalesce(v.readers, 'deleted') AS readers,
        coalesce(v.agent, 'deleted') AS agent
      FROM unnest($1::uuid[], $2::text[], $3::text[]) AS w(id, readers, agent) LEFT JOIN LATERAL (
        SELECT concat_ws(' ', r.event_seq, r.cascade_at, e.phase) AS readers,
          ${agentVersion('r.id', 'e')} AS agent
        FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = w.id
      ) v ON true
    ) c WHERE readers <> known_readers OR agent <> known_agent`,
  row: { id: uuid, readers: text(), agent: text() },
});

type Versions = Pick<RowOf<typeof findChanged>, 'readers' | 'agent'>;

const unknown: Versions = { readers: '', agent: '' };

/** Listens on the database until `db` is closed. */
export async function openNotices(db: Database): Promise<Notices> {
  const readers = new EventEmitter<Record<string, []>>().setMaxListeners(0);
  const agents = new EventEmitter<Record<string, []>>().setMaxListeners(0);
  const broadcast = new EventEmitter().setMaxListeners(0);
  const listen = async (channel: string, perRun: EventEmitter<Record<string, []>>): Promise<void> => {
    await db.listen(
      channel,
      (runId) => {
        perRun.emit(runId);
        broadcast.emit(channel, runId);
      },
      () => {
        for (const runId of perRun.eventNames()) perRun.emit(runId);
        broadcast.emit(channel, null);
      },
    );
  };
  await listen(readersChannel, readers);
  await listen(agentChannel, agents);
  await db.listen(
    queueChannel,
    () => broadcast.emit(queueChannel),
    () => broadcast.emit(queueChannel),
  );
  const subscribe = (emitter: EventEmitter, name: string, listener: (...args: never[]) => void) => {
    const wrapped = listener as (...args: unknown[]) => void;
    emitter.on(name, wrapped);
    return () => void emitter.off(name, wrapped);
  };
  let known = new Map<string, Versions>();
  return {
    onRun: (runId, listener) => subscribe(readers, runId, listener),
    onAgent: (runId, listener) => subscribe(agents, runId, listener),
    onAnyRun: (listener) => subscribe(broadcast, readersChannel, listener),
    onAnyAgent: (listener) => subscribe(broadcast, agentChannel, listener),
    onQueue: (listener) => subscribe(broadcast, queueChannel, listener),
    knowAgent: (runId, version) => {
      const before = known.get(runId) ?? unknown;
      known.set(runId, { ...before, agent: version });
      if (before.agent !== '' && before.agent !== version && agents.listenerCount(runId) > 1) agents.emit(runId);
    },
    findLost: async () => {
      const runIds = new Set([...readers.eventNames(), ...agents.eventNames()].map(String));
      known = new Map([...runIds].map((runId) => [runId, known.get(runId) ?? unknown]));
      if (runIds.size === 0) return;
      const versions = [...known.values()];
      const changed = await db.query(findChanged, [
        [...runIds],
        versions.map((each) => each.readers),
        versions.map(({ agent }) => agent),
      ]);
      for (const { id, ...now } of changed) {
        const before = known.get(id);
        known.set(id, now);
        if (now.readers !== before?.readers) readers.emit(id);
        if (now.agent !== before?.agent) agents.emit(id);
      }
    },
  };
}
