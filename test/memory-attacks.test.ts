/** Tests that requests of one caller cannot stop the service or use up the memory of the machine. */
import { readdir, stat } from 'node:fs/promises';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { type FakeModels, startFakeModels } from './fakes/models.ts';
import { type System, startSystem } from './support/system.ts';
import type { Watched, WatchedService } from './support/watch-service.ts';

const mb = 1024 * 1024;
/**
 * Limits for the service. `healthMs`: processor time of the service during one request to `/healthz`. A service that parsed one of the
 * large bodies of this test in one piece would need at least 20 s. `memoryMb`: the service needs 160 MB when it is idle, and 280 MB during
 * this test. It would need 350 to 455 MB if V8 let garbage grow to a multiple of the live objects.
 */
const most = { memoryMb: 400, healthMs: 15_000 };
/** Size of the conversation of the run, in events of 32 KB each. */
const conversationMb = 96;
const workspaceMb = 32;

let database: TestDatabase;
let models: FakeModels;
let system: System;
let worker: WebSocket;
/** Run tokens of two runs. The requests of the first run have incomplete bodies, those of the second run have whole bodies. */
const tokens: string[] = [];
let runId = '';

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
const half: ClientRequest[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  models = await startFakeModels();
  const env = { ...models.env, RUNYARD_WORKSPACE_MB: String(workspaceMb) };
  system = await startSystem({ fromSources: true, workers: [], databaseUrl: database.url, env });
  const url = system.baseUrl().replace(/^http/, 'ws');
  worker = new WebSocket(`${url}/api/v1/selfhosted/worker/ws?worker_id=attacked`, {
    headers: { authorization: `Bearer ${system.key}` },
  });
  const assigned = new Promise<void>((resolve) => {
    worker.on('message', (data) => {
      const message = JSON.parse(String(data));
      if (message.type !== 'task_assignment') return;
      const { task_id, env_vars } = message.data;
      tokens.push(env_vars.RUNYARD_RUN_TOKEN);
      worker.send(JSON.stringify({ type: 'task_claimed', data: { task_id, worker_id: 'attacked' } }));
      if (tokens.length === 2) resolve();
    });
  });
  await new Promise((resolve, reject) => worker.once('open', resolve).once('error', reject));
  const config = { worker_host: 'attacked', model_id: 'anthropic/claude-opus-5-5' };
  runId = await system.createRun('Wait.', { config });
  await system.createRun('Wait.', { config });
  await assigned;
  // Writes the events of a long run directly to the database, because reports of an agent would take longer.
  await database.db.query(
    `INSERT INTO conversation_events (run_id, seq, execution_id, event)
     SELECT r.id, n, r.current_execution_id, jsonb_build_object('type', 'text', 'seq', n, 'occurred_at', '2026-01-02T03:04:05Z',
       'step_id', 's' || n / 100, 'message_id', 'm' || n / 10, 'role', 'assistant', 'text', repeat(md5(n::text), 1024))
     FROM runs r, generate_series(1, ${(conversationMb * 1024) / 32}) n WHERE r.id = $1`,
    [runId],
  );
  await database.db.query('UPDATE runs SET event_bytes = $2 WHERE id = $1', [runId, conversationMb * mb]);
}, 180_000);

afterAll(async () => {
  for (const one of half) one.destroy();
  worker?.terminate();
  await system?.stop();
  await models?.close();
  await database?.drop();
});

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string | number>>;
}

function open({ method, path: at, key, headers }: Sent): ClientRequest {
  return request(system.baseUrl() + at, {
    method,
    agent,
    headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
  });
}

/** Returns the status and the number of bytes of an answer. The status is 0 if the service ended the connection without an answer. */
async function answerOf(asked: ClientRequest): Promise<{ status: number; bytes: number }> {
  return await new Promise((resolve, reject) => {
    asked.once('error', () => resolve({ status: 0, bytes: 0 }));
    asked.once('response', (response: IncomingMessage) => {
      let bytes = 0;
      response.on('data', (piece: Buffer) => {
        bytes += piece.byteLength;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes }));
      response.once('error', reject);
    });
  });
}

const spaces = Buffer.alloc(workspaceMb * mb, 0x20);

/** Sends a request with all bytes of its body except the last one. */
function halfSent(sent: Sent, size: number, type: string): void {
  const asked = open({ ...sent, headers: { 'content-type': type, 'content-length': size } });
  asked.on('error', () => undefined);
  asked.on('response', (response) => response.resume());
  asked.write(spaces.subarray(0, size - 1));
  half.push(asked);
}

const gateway: Sent = { method: 'POST', path: '/api/v1/gateway/anthropic/v1/messages' };

const manyValues = Buffer.from(`{"model":"claude-opus-5-5","messages":[${'{},'.repeat(5 * mb)}{}]}`);

function millionsOfValues(): Promise<{ status: number; bytes: number }> {
  const headers = { 'content-type': 'application/json', 'content-length': manyValues.length };
  const asked = open({ ...gateway, key: tokens[1] ?? '', headers });
  const answer = answerOf(asked);
  asked.end(manyValues);
  return answer;
}

async function readConversation(): Promise<{ status: number; bytes: number }> {
  const asked = open({ method: 'GET', path: `/api/v1/agent/runs/${runId}/conversation`, key: system.key });
  asked.end();
  return await answerOf(asked);
}

async function read(at: string): Promise<number> {
  const asked = open({ method: 'GET', path: at });
  asked.end();
  return (await answerOf(asked)).status;
}

/**
 * Starts to measure how many bytes of incomplete uploads are on the disk. `most` ends the measurement and returns the highest value.
 */
function lookAtDisk(): { most(): Promise<number> } {
  let most = 0;
  let looking = Promise.resolve();
  const timer = setInterval(() => {
    looking = looking.then(async () => {
      most = Math.max(most, await bytesOnTheirWay());
    });
  }, 100);
  return {
    most: async () => {
      clearInterval(timer);
      await looking;
      return Math.max(most, await bytesOnTheirWay());
    },
  };
}

/** Returns the present number of bytes of incomplete uploads on the disk. */
async function bytesOnTheirWay(): Promise<number> {
  const folder = path.join(system.dataDir, 'blobs/incoming');
  const sizes = (await readdir(folder)).map(
    async (name) => (await stat(path.join(folder, name)).catch(() => null))?.size,
  );
  return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

test('the service stays healthy and below 400 MB under large and incomplete bodies and uploads, and reads of long conversations and the API reference', async () => {
  const watch: WatchedService = { pid: system.service().pid ?? 0, baseUrl: system.baseUrl() };
  const watcher = new Worker(new URL('support/watch-service.ts', import.meta.url), { workerData: watch });
  const looking = lookAtDisk();

  const json = 'application/json';
  for (let n = 0; n < 30; n += 1) {
    halfSent({ ...gateway, key: tokens[0] ?? '' }, 15 * mb, json);
    halfSent({ method: 'POST', path: '/api/v1/harness-support/events', key: tokens[0] ?? '' }, 15 * mb, json);
  }
  for (let n = 0; n < 8; n += 1) {
    const at = '/api/v1/harness-support/workspace?turn=1';
    halfSent({ method: 'PUT', path: at, key: tokens[0] ?? '' }, workspaceMb * mb, 'application/octet-stream');
  }
  const [values, conversations, pages] = await Promise.all([
    Promise.all(Array.from({ length: 6 }, millionsOfValues)),
    Promise.all(Array.from({ length: 6 }, readConversation)),
    Promise.all(Array.from({ length: 50 }, (_, n) => read(n % 2 ? '/docs' : '/api/v1/openapi.json'))),
  ]);
  const seen = await new Promise<Watched>((resolve, reject) => {
    watcher.once('message', resolve).once('error', reject).postMessage('report');
  });
  await watcher.terminate();
  const onTheirWay = await looking.most();

  // The service parses large bodies one after another. The last requests wait too long and get 429, and a client that is still sending
  // may miss this answer (status 0).
  for (const { status } of values) expect([400, 429, 0]).toContain(status);
  expect(values.map(({ status }) => status)).toContain(400);
  for (const { status, bytes } of conversations) {
    expect([200, 429]).toContain(status);
    if (status === 200) expect(bytes).toBeGreaterThan(conversationMb * mb);
  }
  expect(conversations.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3);
  expect(new Set(pages)).toEqual(new Set([200]));
  expect(onTheirWay).toBeGreaterThan(0);
  expect(onTheirWay).toBeLessThanOrEqual(workspaceMb * mb);
  expect(seen.problems).toEqual([]);
  expect(seen.answers).toBeGreaterThan(5);
  expect(seen.memoryMb).toBeLessThan(most.memoryMb);
  expect(seen.healthMs).toBeLessThan(most.healthMs);
}, 240_000);
