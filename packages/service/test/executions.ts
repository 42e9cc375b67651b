/** Test support: the dependencies of executions with a fresh database and a team. Workers exist only as rows of the database. */

import { randomBytes, randomUUIDv7 } from 'node:crypto';
import pino from 'pino';
import type { RepeatableRequest } from '../src/platform/idempotency/once.ts';
import { makeVault } from '../src/platform/secrets/vault.ts';
import {
  defaultTiming,
  type ExecutionDeps,
  type ExecutionTiming,
  type RunLimits,
} from '../src/runs/executions/deps.ts';
import { openNotices } from '../src/runs/executions/notices.ts';
import type { Assignment } from '../src/runs/executions/queue/assign.ts';
import { authenticateRunToken, type RunSession } from '../src/runs/executions/run-tokens/sessions.ts';
import { claim } from '../src/runs/executions/transitions/transitions.ts';
import type { NewRun } from '../src/runs/runs/submit/new-run.ts';
import { writeSingle } from '../src/runs/runs/submit/submit.ts';
import { assignNext } from './assign-next.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

export interface TestExecutions {
  readonly deps: ExecutionDeps;
  readonly database: TestDatabase;
  readonly teamId: string;
  /** Creates a run and returns its id. */
  newRun(overrides?: Partial<NewRun>, once?: RepeatableRequest): Promise<string>;
  /** Inserts the connection of a worker of the hosted pool, and returns its id. */
  newConnection(): Promise<string>;
  /** Assigns the next run to a connection. Returns null if no run is queued. */
  assign(connectionId: string): Promise<Assignment | null>;
  /** Creates a CLAIMED run and returns the session of its run token. */
  newSession(): Promise<RunSession>;
  close(): Promise<void>;
}

/** Adds a team to the database. */
export async function insertTeam(database: TestDatabase, limit = 100): Promise<string> {
  const id = randomUUIDv7();
  await database.db.pool.query('INSERT INTO teams (id, uid, name, max_concurrent_executions) VALUES ($1, $2, $3, $4)', [
    id,
    id.replaceAll('-', '').slice(0, 22),
    'Team',
    limit,
  ]);
  return id;
}

/** Adds copies of a queued run and of its execution to the queue. */
export async function copyQueuedRun({ db }: Pick<TestDatabase, 'db'>, runId: string, count: number): Promise<void> {
  await db.query(
    `WITH made AS MATERIALIZED (SELECT gen_random_uuid() AS id, gen_random_uuid() AS execution FROM generate_series(1, ${count})), runs AS (
       INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
         conversation_id, current_execution_id)
       SELECT made.id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
         gen_random_uuid(), made.execution FROM runs r, made WHERE r.id = $1
     ), requests AS (
       INSERT INTO run_requests (run_id, prompt) SELECT id, 'Do it.' FROM made)
     INSERT INTO executions (id, run_id, team_id, number, phase, pool)
     SELECT made.execution, made.id, e.team_id, e.number, e.phase, e.pool FROM executions e, made WHERE e.run_id = $1`,
    [runId],
  );
}

/**
 * Creates the database, the team and the dependencies. The clock of the database decides when a deadline has passed, so tests change
 * the deadlines in the rows and not the time.
 */
export async function openTestExecutions(
  options: { limit?: number; timing?: Partial<ExecutionTiming>; limits?: Partial<RunLimits> } = {},
): Promise<TestExecutions> {
  const database = await createTestDatabase();
  const { db } = database;
  const executionDeps: ExecutionDeps = {
    db,
    log: pino({ level: 'silent' }),
    notices: await openNotices(db),
    timing: { ...defaultTiming, retryDelaysMs: [0, 0, 0], ...options.timing },
    limits: { eventBytes: 64 * 1024 * 1024, transcriptBytes: 64 * 1024 * 1024, teamBytes: 2 ** 40, ...options.limits },
    secrets: [],
    vault: makeVault(randomBytes(32)),
    random: () => 0.5,
  };
  const teamId = await insertTeam(database, options.limit);
  const newRun: TestExecutions['newRun'] = async (overrides = {}, once) => {
    const id = randomUUIDv7();
    const actor = { kind: 'user', uid: 'tester' } as const;
    const run: NewRun = {
      id,
      teamId,
      title: 'A test',
      prompt: 'Do it.',
      config: {},
      modelId: 'runbook',
      harness: 'oz',
      source: 'API',
      creator: actor,
      executor: actor,
      ancestorIds: [],
      metadata: {},
      contents: [],
      rights: { secrets: [], personal_credentials: true, withheld: [] },
      attachments: [],
      ...overrides,
    };
    await writeSingle(executionDeps, { kind: 'prepared', run, atCapacity: false }, once);
    return id;
  };
  const newConnection = async () => {
    const id = randomUUIDv7();
    await db.pool.query('INSERT INTO worker_connections (id, service_instance_id, worker_id) VALUES ($1, $2, $3)', [
      id,
      randomUUIDv7(),
      `runyard-${id}`,
    ]);
    return id;
  };
  const assign: TestExecutions['assign'] = async (connectionId) => {
    for (;;) {
      const slot = { connectionId, workerId: `runyard-${connectionId}`, workerInstance: 'i', pool: '', teamId: null };
      const assignment = await assignNext(executionDeps, slot);
      if (assignment !== 'contended') return assignment === 'nothing' ? null : assignment;
    }
  };
  const newSession = async () => {
    await newRun();
    const assignment = await assign(await newConnection());
    if (!assignment) throw new Error('nothing was assigned');
    const { runId, executionId, assignmentId, runToken } = assignment;
    await claim(db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
    const session = await authenticateRunToken(db, runToken);
    if (!session) throw new Error('the token opens nothing');
    return session;
  };
  return {
    deps: executionDeps,
    database,
    teamId,
    newRun,
    newConnection,
    assign,
    newSession,
    close: () => database.drop(),
  };
}
