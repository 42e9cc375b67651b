/**
 * Tests that a service process finds due work and changes of runs although the notice about them was lost, and finds due work although
 * the tables of other kinds of work are locked.
 */
import { once } from 'node:events';
import type { ServiceMessage } from '@runyard/contract/workers/worker-protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { cancelRun } from '../packages/service/src/runs/executions/cancel/cancel.ts';
import { defaultTiming, type ExecutionDeps } from '../packages/service/src/runs/executions/deps.ts';
import { appendTimelineEvent } from '../packages/service/src/runs/executions/timeline/timeline.ts';
import { requeue } from '../packages/service/src/runs/executions/transitions/transitions.ts';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { testSchedules } from '../packages/service/test/schedules.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

let database: TestDatabase;
let service: OneService;
/** Commits like a process that is killed after each commit and before its notices: it sends no notice to other processes. */
let killed: Database;
let teamId: string;
const key = newRawKey();

beforeAll(async () => {
  database = await createTestDatabase();
  service = await startService({ databaseUrl: database.url, key });
  killed = await openDatabase({ address: { connectionString: database.url }, maxConnections: 1, log: silentLog });
  killed.setAlone(true);
  const [team] = await database.db.query<{ id: string }>('SELECT id FROM teams');
  teamId = team?.id ?? '';
}, 180_000);
afterAll(async () => {
  await killed?.close();
  await service?.stop();
  await database.drop();
});

/** The process looks for lost notices every second. Without this, the agent's request would end after 25 s. The rest is for a busy machine. */
const foundWithinMs = 20_000;

/** Runs `change`, and returns the milliseconds from its end until `seen` resolves. */
async function timeUntil(change: () => Promise<unknown>, seen: () => Promise<unknown>): Promise<number> {
  await change();
  const startedAt = performance.now();
  await seen();
  return performance.now() - startedAt;
}

/** Connects a fake worker. `next` waits for the next message of a type; if it is an assignment, for one of the run `runId`. */
async function connectWorker() {
  const url = `${service.origin.replace('http', 'ws')}/api/v1/selfhosted/worker/ws?worker_id=runyard-test`;
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } });
  const received: ServiceMessage[] = [];
  socket.on('message', (text) => received.push(JSON.parse(String(text)) as ServiceMessage));
  await once(socket, 'open');
  const say = (type: string, data: object, seq?: number) => socket.send(JSON.stringify({ type, seq, data }));
  const sandbox = { backend: 'none', features: [], missing: [] };
  say('worker_hello', {
    worker_id: 'runyard-test',
    instance_id: 'i',
    slots: 100,
    executions: [],
    sandbox,
    draining: false,
  });
  const next = async <T extends ServiceMessage['type']>(type: T, runId?: string) => {
    const isNext = (each: ServiceMessage) =>
      each.type === type && (each.type !== 'task_assignment' || each.data.task_id === runId);
    await eventually(`a message ${type}`, async () => received.some(isNext), undefined, 20);
    const [message] = received.splice(received.findIndex(isNext), 1);
    return message as Extract<ServiceMessage, { type: T }>;
  };
  return { say, next, close: () => socket.close() };
}

/** Inserts a schedule that is due in half a second, and waits until it has fired. Returns how often it fired too early. */
async function fireOne(): Promise<number> {
  const { insert } = testSchedules({ deps: database } as unknown as TestService);
  const [id] = await insert({ teamId, count: 1, dueSeconds: -0.5 });
  const fired = () =>
    database.db.query<{ early: boolean }>('SELECT fired_at < due_at AS early FROM starts WHERE schedule_id = $1', [id]);
  await eventually('the fire of the schedule', async () => (await fired()).length > 0);
  return (await fired()).filter(({ early }) => early).length;
}

test('the service delivers an event whose notice was lost', async () => {
  const answer = await fetch(`${service.origin}/api/v1/event-subscriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'https://hooks.invalid/runs', events: ['run.created'] }),
  });
  expect(answer.status).toBe(201);
  const { id } = (await answer.json()) as { id: string };
  // Without NOTIFY.
  await database.db.query(
    `INSERT INTO event_deliveries (subscription_id, event, data) VALUES ($1, 'run.created', '{}')`,
    [id],
  );
  const attempted = () =>
    database.db.query('SELECT FROM event_deliveries WHERE subscription_id = $1 AND attempts > 0', [id]);
  await eventually('the first attempt', async () => (await attempted()).length > 0);
});

test('the service fires a schedule that was inserted without a notice, and does not fire it too early', async () => {
  expect(await fireOne()).toBe(0);
});

test('the service fires schedules although the statement that finds the due work of all loops waits for a lock on another table', async () => {
  const early = await database.db.transaction(async (tx) => {
    await tx.query('LOCK TABLE factory_sources IN ACCESS EXCLUSIVE MODE');
    return await fireOne();
  });
  expect(early).toBe(0);
});

test('queue, streams, inbox and worker follow a process that is killed after each commit within about a second', async () => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const worker = await connectWorker();
  const body = JSON.stringify({ prompt: 'Do it.' });
  const created = await fetch(`${service.origin}/api/v1/agent/runs`, { method: 'POST', headers, body });
  const { run_id: runId } = (await created.json()) as { run_id: string };
  const { data: first } = await worker.next('task_assignment', runId);
  const target = { runId, executionId: first.execution_id };

  let second = first;
  const queueMs = await timeUntil(
    () => requeue(killed, { ...target, args: { assignment_id: first.assignment_id } }),
    async () => {
      second = (await worker.next('task_assignment', runId)).data;
    },
  );
  expect(queueMs).toBeLessThan(foundWithinMs);
  worker.say('task_claimed', { task_id: runId, execution_id: target.executionId, worker_id: 'runyard-test' }, 1);
  await worker.next('messages_applied');

  const stream = await fetch(`${service.origin}/api/v1/agent/runs/${runId}/events`, { headers });
  const events = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  const event = {
    runId,
    executionId: target.executionId,
    type: 'setup_step_started',
    payload: { name: 'unseen' },
  } as const;
  const streamMs = await timeUntil(
    () => appendTimelineEvent(killed, event),
    async () => {
      for (let text = ''; !text.includes('unseen'); text += (await events.read()).value ?? '');
    },
  );
  expect(streamMs).toBeLessThan(foundWithinMs);
  await events.cancel();

  const agent = { authorization: `Bearer ${second.env_vars?.RUNYARD_RUN_TOKEN}` };
  const inbox = fetch(`${service.origin}/api/v1/harness-support/inbox?wait_ms=25000&after=0&interrupted=0`, {
    headers: agent,
  });
  await eventually(
    'the lease of an agent that waits',
    async () => (await database.db.query('SELECT FROM executions WHERE agent_seen_at IS NOT NULL')).length > 0,
  );
  const deps = { db: killed, timing: defaultTiming, log: silentLog } as unknown as ExecutionDeps;
  const inboxMs = await timeUntil(
    async () => expect(await cancelRun(deps, runId)).toBe('cancelled'),
    async () => expect(await (await inbox).json()).toEqual({ items: [{ type: 'cancel' }] }),
  );
  expect(inboxMs).toBeLessThan(foundWithinMs);
  await worker.next('task_cancellation');
  worker.close();
});
