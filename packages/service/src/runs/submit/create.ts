import { randomUUIDv7 } from 'node:crypto';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { RunAgentResponse } from '@runyard/contract/run-request';
import type { RunSourceType } from '@runyard/contract/states';
import type { RunActor } from '../../access/actor.ts';
import { queueChannel } from '../../executions/channels.ts';
import type { Engine } from '../../executions/engine.ts';
import { holdsSlot } from '../../executions/queue/busy.ts';
import { insertAttachments } from '../../files/attachments/insert-attachments.ts';
import type { StoredAttachment } from '../../files/attachments/stored.ts';
import { type Attempt, once, onceWithin, type RepeatableRequest } from '../../idempotency/once.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { enqueueDeliveries } from '../../subscriptions/enqueue.ts';
import { type ChildLimits, type ChildRefusal, refuseChild } from '../tree/admit-child.ts';
import { batched } from './batched.ts';

/** A run that was checked and may be created. */
export interface NewRun {
  /** UUIDv7 */
  readonly id: string;
  readonly teamId: string;
  readonly title: string;
  readonly prompt: string;
  readonly config: AmbientAgentConfig;
  readonly name?: string;
  readonly modelId: string;
  readonly harness: string;
  readonly environmentId?: string;
  readonly skillSpec?: string;
  /** Self-hosted worker that must run it; absent: the hosted pool. */
  readonly workerHost?: string;
  readonly source: RunSourceType;
  readonly creator: RunActor;
  readonly executor: RunActor;
  readonly mode?: string;
  readonly parentRunId?: string;
  readonly ancestorIds: readonly string[];
  /** Of a child that an agent starts. */
  readonly childLimits?: ChildLimits;
  readonly scheduleId?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Conversation to continue; absent: a new one. */
  readonly conversationId?: string;
  readonly attachments: readonly StoredAttachment[];
}

/** What became of a create; `replayed`: the same request was answered before, with this. */
export type CreateOutcome =
  | { readonly kind: 'created'; readonly response: RunAgentResponse }
  | { readonly kind: 'replayed'; readonly response: RunAgentResponse }
  | { readonly kind: 'idempotency_conflict' }
  | { readonly kind: 'refused'; readonly reason: ChildRefusal };

/** One statement for all runs that wait: run, first execution (its place in the queue), first event, deliveries to subscribers, wake-up. */
const insertRuns: Statement = {
  name: 'insert_runs',
  text: `
    WITH input AS (
      SELECT * FROM jsonb_to_recordset($1::jsonb) AS i(
        id uuid, execution_id uuid, team_id uuid, title text, prompt text, config jsonb, name text, model_id text, harness text,
        environment_id text, skill_spec text, worker_host text, source text, creator_kind text, creator_uid text,
        executor_kind text, executor_uid text, mode text, parent_run_id uuid, ancestor_ids jsonb, schedule_id uuid,
        metadata jsonb, conversation_id uuid)
    ), run AS (
      INSERT INTO runs (id, team_id, state, title, prompt, config, name, model_id, harness, environment_id, skill_spec, worker_host,
        source, creator_kind, creator_uid, executor_kind, executor_uid, mode, parent_run_id, ancestor_ids, schedule_id, metadata,
        conversation_id, current_execution_id)
      SELECT id, team_id, 'QUEUED', title, prompt, config, name, model_id, harness, environment_id, skill_spec, worker_host,
        source, creator_kind, creator_uid, executor_kind, executor_uid, mode, parent_run_id,
        ARRAY(SELECT jsonb_array_elements_text(ancestor_ids)::uuid), schedule_id, metadata, conversation_id, execution_id
      FROM input
    ), execution AS (
      INSERT INTO executions (id, run_id, team_id, number, phase, pool, depth)
      SELECT execution_id, id, team_id, 1, 'queued', coalesce(worker_host, ''), jsonb_array_length(ancestor_ids) FROM input
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, state, execution_number)
      SELECT id, 1, 'oz_run_created', 'QUEUED', 1 FROM input
    ), delivery AS (${enqueueDeliveries('run.created', 'QUEUED', '(SELECT *, 1 AS event_seq FROM input)')})
    SELECT pg_notify('${queueChannel}', pool) FROM (SELECT DISTINCT coalesce(worker_host, '') AS pool FROM input) pools`,
};

/** True where the run would have to wait: no free place in the team's limit, or none at a connected worker of its pool. */
const readAtCapacity: Statement = {
  name: 'read_at_capacity',
  text: `
    SELECT (SELECT count(*) FROM executions e WHERE e.team_id = $1 AND ${holdsSlot('e')}) >= t.max_concurrent_executions
      OR coalesce((SELECT sum(coalesce(slots, 1000)) FROM worker_connections
                   WHERE NOT draining AND CASE WHEN $2 = '' THEN team_id IS NULL ELSE worker_id = $2 AND team_id = $1 END), 0)
         <= (SELECT count(*) FROM executions e WHERE e.pool = $2 AND ($2 = '' OR e.team_id = $1) AND ${holdsSlot('e')}) AS at_capacity
    FROM teams t WHERE t.id = $1`,
};

const toRow = (run: NewRun) => ({
  id: run.id,
  execution_id: randomUUIDv7(),
  team_id: run.teamId,
  title: run.title,
  prompt: run.prompt,
  config: run.config,
  name: run.name,
  model_id: run.modelId,
  harness: run.harness,
  environment_id: run.environmentId,
  skill_spec: run.skillSpec,
  worker_host: run.workerHost,
  source: run.source,
  creator_kind: run.creator.kind,
  creator_uid: run.creator.uid,
  executor_kind: run.executor.kind,
  executor_uid: run.executor.uid,
  mode: run.mode,
  parent_run_id: run.parentRunId,
  ancestor_ids: run.ancestorIds,
  schedule_id: run.scheduleId,
  metadata: run.metadata,
  conversation_id: run.conversationId ?? randomUUIDv7(),
});

async function insert(db: Queryable, runs: readonly NewRun[]): Promise<void> {
  await db.query(insertRuns, [JSON.stringify(runs.map(toRow))]);
}

/**
 * Runs that arrive while an insert is under way go together in the next one: NOTIFY takes a lock over the whole
 * database at commit, so many small transactions would queue up behind one another (see bench/creates.ts).
 */
const insertTogether = batched<Engine, NewRun>(100, (engine, runs) => insert(engine.db, runs));

const capacity = new WeakMap<Engine, Map<string, { readAt: number; value: Promise<boolean> }>>();

/** At most a second old: a hint for the caller, nothing depends on it. */
function readCapacity(engine: Engine, db: Queryable, run: NewRun): Promise<boolean> {
  const pool = run.workerHost ?? '';
  const key = `${run.teamId} ${pool}`;
  const known = capacity.get(engine) ?? new Map();
  capacity.set(engine, known);
  const last = known.get(key);
  if (last && Date.now() - last.readAt < 1000) return last.value;
  const value = db
    .query<{ at_capacity: boolean }>(readAtCapacity, [run.teamId, pool])
    .then((rows) => rows[0]?.at_capacity ?? false);
  value.catch(() => known.delete(key));
  known.set(key, { readAt: Date.now(), value });
  return value;
}

/** How a run is created: once for a request that may be repeated, and in the caller's transaction. */
export interface CreateOptions {
  readonly once?: RepeatableRequest | undefined;
  readonly tx?: Queryable | undefined;
}

/**
 * Creates the run with its first execution queued, its attachments and its idempotency key: all or nothing, in the
 * caller's transaction where one is given.
 */
export async function createRun(
  engine: Engine,
  run: NewRun,
  { once: request, tx: callers }: CreateOptions = {},
): Promise<CreateOutcome> {
  const atCapacity = await readCapacity(engine, callers ?? engine.db, run);
  const response: RunAgentResponse = { run_id: run.id, task_id: run.id, state: 'QUEUED', at_capacity: atCapacity };
  const { parentRunId, ancestorIds, childLimits } = run;
  if (!callers && !request && run.attachments.length === 0 && parentRunId === undefined) {
    await insertTogether(engine, run);
    return { kind: 'created', response };
  }
  const work = async (tx: Queryable): Promise<Attempt<RunAgentResponse, ChildRefusal>> => {
    if (parentRunId !== undefined) {
      const reason = await refuseChild(tx, { parentRunId, ancestorIds }, childLimits);
      if (reason) return { kind: 'failed', failure: reason };
    }
    await insert(tx, [run]);
    await insertAttachments(tx, { runId: run.id }, run.attachments);
    return { kind: 'done', response };
  };
  const attempt = callers ? await onceWithin(callers, request, work) : await once(engine.db, request, work);
  if (attempt.kind === 'conflict') return { kind: 'idempotency_conflict' };
  if (attempt.kind === 'failed') return { kind: 'refused', reason: attempt.failure };
  return attempt.response.run_id === run.id
    ? { kind: 'created', response }
    : { kind: 'replayed', response: attempt.response };
}
