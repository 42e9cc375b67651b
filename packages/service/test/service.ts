/**
 * Test support: a service with its HTTP server on a real port, a real database and two teams. Runs are assigned to a worker that
 * exists only as a row.
 */
import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { Problem } from '@runyard/contract/wire/errors';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { FastifyInstance } from 'fastify';
import pino from 'pino';
import { afterAll } from 'vitest';
import { ask } from '../../../test/support/ask.ts';
import { newSecretsKey } from '../../../test/support/secrets-key.ts';
import type { Edge } from '../src/edges/edge.ts';
import type { AdmitModelRequest } from '../src/edges/gateway/models/admission.ts';
import { buildApp } from '../src/edges/http/app.ts';
import type { ServiceDeps } from '../src/edges/http/server/deps.ts';
import type { ClientTimeouts } from '../src/edges/http/server/make-app.ts';
import { checkStored, makeUndo, wireParts } from '../src/edges/start/open-parts.ts';
import { type BodyLimits, makeBodyBudget } from '../src/platform/bodies/body-budget.ts';
import { openBlobs } from '../src/platform/store/blobs/open-blobs.ts';
import { silentLog } from '../src/platform/store/database/log.ts';
import { openDatabase } from '../src/platform/store/database/open-database.ts';
import { unlimitedSpace } from '../src/platform/store/free-space/free-space.ts';
import { readSecretFile } from '../src/platform/store/secret-file.ts';
import type { Assignment } from '../src/runs/executions/queue/assign.ts';
import { claim } from '../src/runs/executions/transitions/transitions.ts';
import { listDomains } from '../src/service.ts';
import { newUid } from '../src/team/access/teams/uid.ts';
import { assignNext } from './assign-next.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { insertKey, type KeyOptions } from './insert-key.ts';

/** Options of a test service. Its parts are connected in the same way as in a service process. */
export interface TestServiceOptions {
  readonly timeouts?: ClientTimeouts;
  readonly env?: Record<string, string>;
  readonly admitModelRequest?: AdmitModelRequest;
  /** Opens a proxy to the database at this URL, and returns the URL of the proxy. Default: the service connects directly. */
  readonly through?: (databaseUrl: string) => Promise<string>;
  readonly bodyLimits?: BodyLimits;
  /** The migrated database of the service. Default: a database without data. */
  readonly database?: TestDatabase;
}

/** An answer of the service. A JSON body is parsed. */
export interface TestAnswer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export interface RequestOptions {
  /** Null: the request has no key. Default: the key of the first team's administrator. */
  readonly key?: string | null;
  readonly body?: unknown;
  /** Sent unchanged instead of `body`. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}

export interface TestService {
  readonly baseUrl: string;
  readonly deps: ServiceDeps;
  readonly app: FastifyInstance;
  readonly database: TestDatabase;
  readonly key: string;
  readonly teamId: string;
  readonly otherTeamId: string;
  /** Key of the other team's administrator. */
  readonly otherKey: string;
  /** The log as JSON lines. */
  readonly logged: string[];
  newKey(options?: KeyOptions): Promise<string>;
  /** `path` is below `/api/v1`, or a whole URL. Redirects are not followed. */
  request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<TestAnswer<T>>;
  /** Sends a request, and returns the body of the answer. Throws unless the status is 2xx. */
  ok<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<T>;
  /**
   * Reports events as the agent of the run token. Numbers the events from `firstSeq`, default 1, and adds a time. Members of an event
   * replace these two.
   */
  report(runToken: string, events: readonly object[], firstSeq?: number): Promise<TestAnswer<{ acknowledged: number }>>;
  /** Reports as the agent of the run token that the agent has started, and with a prompt also that the step `s1` has begun. */
  begin(runToken: string, prompt?: string): Promise<void>;
  /** Sends a request. Throws unless the answer is a valid problem document with this status. */
  problem(status: number, method: string, path: string, options?: RequestOptions): Promise<Problem>;
  newRun(body?: Record<string, unknown>, key?: string): Promise<string>;
  /** Creates a run and assigns it to a worker, which claims it by default. */
  startExecution(body?: Record<string, unknown>, upTo?: 'PENDING' | 'CLAIMED'): Promise<Assignment>;
  /** Assigns a waiting run to a worker, which claims it by default. */
  claimRun(runId: string, upTo?: 'PENDING' | 'CLAIMED'): Promise<Assignment>;
  /** Assigns the next queued execution to a worker of the hosted pool. Returns null if no execution is queued. */
  assignNext(): Promise<Assignment | null>;
  close(): Promise<void>;
}

/** Returns the domains of a service without the endpoint of workers, because the tests open this endpoint themselves. */
export const domainsWithoutWorkers = (deps: ServiceDeps): Edge[] =>
  listDomains(deps).map((domain) =>
    domain.name === 'workers' ? { name: domain.name, routes: () => domain.routes?.() ?? [] } : domain,
  );

/** Starts a service for the tests of a file, and closes it after the tests. */
export async function openTestService(options?: TestServiceOptions): Promise<TestService> {
  const service = await startTestService(options);
  afterAll(() => service.close());
  return service;
}

/** The code host of the service by default. No program listens at this address, so no test sends requests to a code host on the internet. */
const nowhere = 'http://127.0.0.1:9/{owner}/{repo}.git';

/** Starts a service. The caller must close it. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-http-'));
  await writeFile(path.join(folder, 'secrets-key'), newSecretsKey(), { mode: 0o600 });
  const database = options.database ?? (await createTestDatabase());
  const db = options.through
    ? await openDatabase({
        address: { connectionString: await options.through(database.url) },
        maxConnections: 10,
        log: silentLog,
      })
    : database.db;
  const logged: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) });
  const parsed = parseSettings({ RUNYARD_DATA_DIR: folder, RUNYARD_CODE_HOST_URL: nowhere, ...options.env });
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
  const undo = makeUndo(log);
  let baseUrl = '';
  const stored = await openBlobs(parsed.settings, folder, log);
  await checkStored(stored);
  const wired = await wireParts(
    {
      settings: parsed.settings,
      log,
      dataDir: folder,
      baseUrl: () => options.env?.RUNYARD_BASE_URL ?? baseUrl,
      webhookBaseUrl: () => baseUrl,
      undo,
    },
    {
      db,
      stored,
      freeSpace: unlimitedSpace,
      databaseProblem: () => null,
      random: () => 0.5,
    },
  );
  const adminKey = parsed.settings.RUNYARD_BOOTSTRAP_KEY ?? (await readSecretFile(path.join(folder, 'bootstrap-key')));
  if (adminKey === undefined) throw new Error('the bootstrap key is not there');
  const { executionDeps } = wired;
  const { admitModelRequest } = options;
  const deps: ServiceDeps = {
    ...wired,
    bodies: makeBodyBudget(options.bodyLimits),
    ...(admitModelRequest ? { admitModelRequest } : {}),
  };
  const app = await buildApp(deps, domainsWithoutWorkers(deps), options.timeouts);
  baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const [team] = await db.query<{ id: string }>(`SELECT id FROM teams ORDER BY name = 'Default team' DESC`);
  const teamId = team?.id ?? '';
  const otherTeamId = randomUUIDv7();
  await db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'Other')`, [otherTeamId, newUid()]);
  const newKey = (key: KeyOptions = {}) => insertKey(db, teamId, key);
  const otherKey = await newKey({ teamId: otherTeamId });

  const request = async <T>(method: string, path: string, given: RequestOptions = {}): Promise<TestAnswer<T>> => {
    const key = given.key === undefined ? adminKey : given.key;
    const answer = await ask(path.startsWith('http') ? path : baseUrl + apiPrefix + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...given.headers,
      },
      ...(given.raw !== undefined
        ? { body: given.raw }
        : given.body === undefined
          ? {}
          : { body: JSON.stringify(given.body) }),
    });
    const { text } = answer;
    const type = answer.headers.get('content-type') ?? '';
    const isJson = /json(;|$)/.test(type) && !type.includes('ndjson');
    return { ...answer, body: (isJson && text ? JSON.parse(text) : undefined) as T };
  };

  const ok = async <T>(method: string, path: string, given?: RequestOptions): Promise<T> => {
    const { status, text, body } = await request<T>(method, path, given);
    if (status < 200 || status > 299) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    return body;
  };

  const report: TestService['report'] = (key, events, firstSeq = 1) => {
    const occurred_at = '2026-01-02T03:04:05.000Z';
    const numbered = events.map((event, index) => ({ seq: firstSeq + index, occurred_at, ...event }));
    return request('POST', '/harness-support/events', { key, body: { events: numbered } });
  };

  const newRun = async (body: Record<string, unknown> = {}, key = adminKey) =>
    (await ok<{ run_id: string }>('POST', '/agent/runs', { key, body: { prompt: 'Do it', ...body } })).run_id;

  const connection = { id: '' };
  const connectionId = async () => {
    if (connection.id) return connection.id;
    connection.id = randomUUIDv7();
    await db.query(
      `INSERT INTO worker_connections (id, service_instance_id, worker_id, instance_id, team_id, slots) VALUES ($1, $1, 'runyard-test', 'one', NULL, 1000)`,
      [connection.id],
    );
    return connection.id;
  };

  const assignFrom = async (pool: string): Promise<Assignment | null> => {
    const connection = await connectionId();
    for (;;) {
      const worker = { connectionId: connection, workerId: 'runyard-test', workerInstance: 'one' };
      const slot = { ...worker, pool, teamId: null, holdsHosts: true, runsServiceImages: true };
      const assignment = await assignNext(executionDeps, slot);
      if (assignment === 'contended') continue;
      return assignment === 'nothing' ? null : assignment;
    }
  };

  const claimRun = async (runId: string, upTo: 'PENDING' | 'CLAIMED' = 'CLAIMED'): Promise<Assignment> => {
    // Move the execution to a separate pool, so that no other waiting run is assigned instead.
    await db.query('UPDATE executions SET pool = $2 WHERE run_id = $1', [runId, runId]);
    const assignment = await assignFrom(runId);
    if (!assignment) throw new Error('nothing was assigned');
    if (upTo === 'CLAIMED') {
      const args = { assignment_id: assignment.assignmentId, lease_seconds: 90 };
      await claim(db, { runId, executionId: assignment.executionId, args });
    }
    return assignment;
  };

  return {
    baseUrl,
    deps,
    app,
    database,
    key: adminKey,
    teamId,
    otherTeamId,
    otherKey,
    logged,
    newKey,
    request,
    ok,
    report,
    begin: async (key, prompt) => {
      const turn = prompt === undefined ? [] : [{ type: 'turn_started', step_id: 's1', prompt }];
      const { status, text } = await report(key, [
        { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
        ...turn,
      ]);
      if (status !== 200) throw new Error(text);
    },
    problem: async (status, method, path, given) => {
      const answer = await request(method, path, given);
      if (answer.status !== status)
        throw new Error(`${method} ${path} answered ${answer.status}, not ${status}: ${answer.text}`);
      const type = answer.headers.get('content-type');
      if (!type?.startsWith('application/problem+json')) throw new Error(`the answer is ${type}`);
      const problem = Problem.parse(answer.body);
      if (problem.status !== status) throw new Error(`the problem says ${problem.status}, the answer ${status}`);
      return problem;
    },
    newRun,
    startExecution: async (body, upTo) => await claimRun(await newRun(body), upTo),
    claimRun,
    assignNext: () => assignFrom(''),
    close: async () => {
      await app.close();
      await undo.run();
      if (db !== database.db) await db.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
