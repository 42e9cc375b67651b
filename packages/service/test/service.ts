/** Test support: the HTTP side on a real port and a real database, two teams, and executions without a worker. */
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { Problem } from '@runyard/contract/wire/errors';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { FastifyInstance } from 'fastify';
import pino from 'pino';
import { afterAll } from 'vitest';
import type { Edge } from '../src/edges/edge.ts';
import { buildApp } from '../src/edges/http/app.ts';
import type { ServiceDeps } from '../src/edges/http/server/deps.ts';
import { makeBodyBudget } from '../src/platform/bodies/body-budget.ts';
import { loadSigner } from '../src/platform/secrets/signer.ts';
import { makeVault } from '../src/platform/secrets/vault.ts';
import { openFolderBlobs } from '../src/platform/store/blobs/folder-blobs.ts';
import { openDatabase } from '../src/platform/store/database/database.ts';
import { silentLog } from '../src/platform/store/database/log.ts';
import { unlimitedSpace } from '../src/platform/store/free-space.ts';
import { readLimits } from '../src/runs/conversations/read.ts';
import { defaultTiming, type ExecutionDeps } from '../src/runs/executions/deps.ts';
import { openNotices } from '../src/runs/executions/notices.ts';
import { type Assignment, assignNext } from '../src/runs/executions/queue/assign.ts';
import { claim } from '../src/runs/executions/transitions/transitions.ts';
import { limitsOf } from '../src/runs/harness-support/events/event-budget.ts';
import { lastRuns } from '../src/runs/runs/list/last-runs.ts';
import { listDomains } from '../src/service.ts';
import { bootstrap } from '../src/team/access/keys/bootstrap.ts';
import { openKeyDirectory } from '../src/team/access/keys/directory.ts';
import { openKeyWatch } from '../src/team/access/keys/watch.ts';
import { newUid } from '../src/team/access/teams/uid.ts';
import { openCodeHosts } from '../src/team/code-hosts/code-hosts.ts';
import { openContentPolicy } from '../src/team/content-policy/content-policy.ts';
import { openModels } from '../src/team/models/models.ts';
import { openSkillLibrary } from '../src/team/skills/library.ts';
import { readFolder } from '../src/team/skills/read-folder.ts';
import { openSourceReader } from '../src/triggers/definitions/source/reader.ts';
import { startDeliveriesWith } from '../src/triggers/starts/deliveries/start-deliveries.ts';
import { openWebhookDirectory } from '../src/triggers/webhooks/ingest/directory.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { insertKey, type KeyOptions } from './insert-key.ts';
import type { TestServiceOptions } from './service-options.ts';

/** An answer, with its body parsed where it is JSON. */
export interface TestAnswer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export interface RequestOptions {
  /** Default: the administrator's key of the first team; null: no key. */
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
  /** Does the same, and expects a valid problem document of the status. */
  problem(status: number, method: string, path: string, options?: RequestOptions): Promise<Problem>;
  newRun(body?: Record<string, unknown>, key?: string): Promise<string>;
  /** Creates a run and assigns it to a worker, which claims it by default. */
  startExecution(body?: Record<string, unknown>, upTo?: 'PENDING' | 'CLAIMED'): Promise<Assignment>;
  /** Does the same for a run that waits. */
  claimRun(runId: string, upTo?: 'PENDING' | 'CLAIMED'): Promise<Assignment>;
  /** Assigns the next execution to a worker of the hosted pool; null: none is queued. */
  assignNext(): Promise<Assignment | null>;
  close(): Promise<void>;
}

/** The domains without the endpoint of workers, because tests open their own. */
export const domainsWithoutWorkers = (deps: ServiceDeps): Edge[] =>
  listDomains(deps).map((domain) =>
    domain.name === 'workers' ? { name: domain.name, routes: () => domain.routes?.() ?? [] } : domain,
  );

/** Starts one for the tests of a file, and closes it after them. */
export async function openTestService(options?: TestServiceOptions): Promise<TestService> {
  const service = await startTestService(options);
  afterAll(() => service.close());
  return service;
}

/** No program listens there, so that no test sends requests to a code host of the internet. */
const nowhere = 'http://127.0.0.1:9/{owner}/{repo}.git';

/** Starts one; the caller closes it. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-http-'));
  const database = await createTestDatabase();
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
  const models = await openModels(parsed.settings);
  if (!models.ok) throw new Error(models.problems.join('\n'));
  const policyFile = parsed.settings.RUNYARD_CONTENT_POLICY_FILE;
  const policy = policyFile
    ? await openContentPolicy(policyFile, { log, key: parsed.settings.RUNYARD_CONTENT_POLICY_KEY })
    : undefined;
  if (policy && !policy.ok) throw new Error(policy.problems.join('\n'));
  const first = await bootstrap(db, { dataDir: folder, key: undefined });
  if (first.kind !== 'ready') throw new Error('the bootstrap key is not there');
  const vault = makeVault(randomBytes(32));
  const executionDeps: ExecutionDeps = {
    db,
    log,
    notices: await openNotices(db),
    timing: defaultTiming,
    limits: limitsOf(parsed.settings),
    secrets: options.secrets ?? [],
    vault,
    random: () => 0.5,
  };
  let baseUrl = '';
  const codeHosts = openCodeHosts({
    db,
    vault,
    template: parsed.settings.RUNYARD_CODE_HOST_URL,
    apiUrl: parsed.settings.RUNYARD_CODE_HOST_API_URL,
  });
  const blobs = await openFolderBlobs(path.join(folder, 'blobs'));
  const deps: ServiceDeps = {
    db,
    blobs,
    settings: parsed.settings,
    baseUrl: () => baseUrl,
    log,
    models: models.models,
    ...(policy ? { contentPolicy: policy.policy } : {}),
    executionDeps,
    signing: await loadSigner(db),
    vault,
    codeHosts,
    skills: openSkillLibrary({ codeHosts, folder: readFolder(folder) }),
    sourceReader: openSourceReader({ codeHosts, folder: readFolder(folder) }),
    ...(options.admitModelRequest ? { admitModelRequest: options.admitModelRequest } : {}),
    lastRuns,
    keys: await openKeyDirectory(db, log),
    keyWatch: await openKeyWatch(db, log),
    webhooks: await openWebhookDirectory(db, vault),
    webhookBaseUrl: () => baseUrl,
    startDeliveries: options.startDeliveries ?? startDeliveriesWith({ executionDeps, blobs, models: models.models }),
    bodies: makeBodyBudget(options.bodyLimits),
    conversationReads: makeBodyBudget(readLimits),
    serviceInstanceId: randomUUIDv7(),
    freeSpace: unlimitedSpace,
    databaseProblem: () => null,
  };
  const app = await buildApp(deps, domainsWithoutWorkers(deps), options.timeouts);
  baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const [team] = await db.query<{ id: string }>('SELECT id FROM teams');
  const teamId = team?.id ?? '';
  const otherTeamId = randomUUIDv7();
  await db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'Other')`, [otherTeamId, newUid()]);
  const newKey = (key: KeyOptions = {}) => insertKey(db, teamId, key);
  const otherKey = await newKey({ teamId: otherTeamId });

  const request = async <T>(method: string, path: string, given: RequestOptions = {}): Promise<TestAnswer<T>> => {
    const key = given.key === undefined ? first.key : given.key;
    const response = await fetch(path.startsWith('http') ? path : baseUrl + apiPrefix + path, {
      method,
      redirect: 'manual',
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
    const text = await response.text();
    const isJson =
      /json(;|$)/.test(response.headers.get('content-type') ?? '') &&
      !response.headers.get('content-type')?.includes('ndjson');
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson && text ? JSON.parse(text) : undefined) as T,
    };
  };

  const newRun = async (body: Record<string, unknown> = {}, key = first.key) => {
    const created = await request<{ run_id: string }>('POST', '/agent/runs', {
      key,
      body: { prompt: 'Do it', ...body },
    });
    if (created.status !== 200) throw new Error(created.text);
    return created.body.run_id;
  };

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
      const slot = { connectionId: connection, workerId: 'runyard-test', workerInstance: 'one', pool, teamId: null };
      const assignment = await assignNext(executionDeps, slot);
      if (assignment === 'contended') continue;
      return assignment === 'nothing' ? null : assignment;
    }
  };

  const claimRun = async (runId: string, upTo: 'PENDING' | 'CLAIMED' = 'CLAIMED'): Promise<Assignment> => {
    // A pool of its own, so that no other waiting run is assigned.
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
    key: first.key,
    teamId,
    otherTeamId,
    otherKey,
    logged,
    newKey,
    request,
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
      deps.keys.close();
      deps.keyWatch.close();
      deps.webhooks.close();
      if (db !== database.db) await db.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
