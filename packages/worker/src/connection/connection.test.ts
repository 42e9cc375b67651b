import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { type Logger, pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type FakeWorkerService,
  fakeAssignment,
  startFakeWorkerService,
} from '../../../../test/fakes/worker-service.ts';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { type Connection, connect, type WorkMessage } from './connection.ts';
import { openInstanceToken } from './instance-token.ts';
import { createOutbox, type Outbox } from './outbox.ts';

const silent = pino({ level: 'silent' });
const inTime = { timeout: 60_000 };

let service: FakeWorkerService;
let connection: Connection | undefined;
let outbox: Outbox;
let received: WorkMessage[];
let folder: string;
beforeEach(async () => {
  service = closeAtEnd(await startFakeWorkerService());
  outbox = createOutbox();
  received = [];
  folder = newFolder();
});
afterEach(async () => {
  await connection?.close();
  connection = undefined;
});

function start(options: { key?: string; log?: Logger; onRefused?: () => void } = {}): Connection {
  const token = openInstanceToken(folder, silent);
  connection = connect({
    serviceRoot: service.url,
    workerName: 'box',
    readKey: async () => options.key ?? 'test-key',
    keySource: 'RUNYARD_API_KEY',
    outbox,
    hello: () => ({
      type: 'worker_hello',
      data: {
        worker_id: 'box',
        instance_id: 'one',
        ...token.proof(),
        slots: 1,
        executions: [],
        sandbox: { backend: 'none', features: [], missing: [] },
        draining: false,
      },
    }),
    status: () => undefined,
    onToken: token.keep,
    onMessage: (message) => received.push(message),
    onRefused: options.onRefused ?? (() => undefined),
    log: options.log ?? silent,
  });
  return connection;
}

const ended = (id: string): WorkerMessage => ({
  type: 'task_completed',
  data: { task_id: id, execution_id: id, message: 'done' },
});
const ends = () =>
  service.messages.flatMap((message) => (message.type === 'task_completed' ? [message.data.task_id] : []));

describe('the connection of a worker', () => {
  test('sends a message again on each new connection until the service confirms it', async () => {
    const { send } = start();
    await service.waitFor('worker_hello');
    service.acknowledge(false);
    send(ended('a'));
    await service.waitFor('task_completed');
    // Before the connection is cut, wait until the worker has handled a message of the service. A pong would not prove this, because a
    // socket answers pings before messages are handled.
    service.send(fakeAssignment('marker'));
    await vi.waitFor(() => expect(received).toHaveLength(1), inTime);
    service.cutConnections();
    await vi.waitFor(() => expect(ends()).toEqual(['a', 'a']), inTime);
    expect(outbox.kept()).toHaveLength(1);

    service.acknowledge(true);
    service.cutConnections();
    await vi.waitFor(() => expect(outbox.kept()).toEqual([]), inTime);
    expect(ends()).toEqual(['a', 'a', 'a']);
  });

  test('numbers messages in the order they were sent, from 1', async () => {
    const { send } = start();
    await service.waitFor('worker_hello');
    for (const id of ['a', 'b']) send(ended(id));
    await vi.waitFor(() => expect(ends()).toEqual(['a', 'b']), inTime);
    expect(service.messages.flatMap((message) => ('seq' in message ? [message.seq] : []))).toEqual([1, 2]);
  });

  test('sends on the next connection the token that the service has issued, as proof that the worker is still the same process', async () => {
    start();
    await service.waitFor('worker_hello', ({ token }) => token === undefined);
    await vi.waitFor(async () => {
      expect(await readFile(path.join(folder, 'instance-tokens'), 'utf8')).toBe('token of one\n');
    }, inTime);
    service.cutConnections();
    await service.waitFor('worker_hello', ({ token }) => token === 'token of one');
    expect((await stat(path.join(folder, 'instance-tokens'))).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['of another form', { task: { id: 'x' } }, 'execution-1'],
    ['without its execution', { execution_id: 7 }, undefined],
  ])('rejects an assignment %s, so that its run does not wait', async (_name, wrong, executionId) => {
    start();
    await service.waitFor('worker_hello');
    const assignment = fakeAssignment('execution-1');
    service.sendText(JSON.stringify({ ...assignment, data: { ...assignment.data, ...wrong } }));
    const rejected = await service.waitFor('task_rejected');
    expect(rejected).toMatchObject({
      task_id: 'task-of-execution-1',
      reason: expect.stringContaining('not understood'),
    });
    expect(rejected.execution_id).toBe(executionId);
    for (const frame of ['[]', 'no JSON', '{"type":"task_assignment"}', '{"type":"unknown","data":{"task_id":"a"}}']) {
      service.sendText(frame);
    }
    service.send(fakeAssignment('good'));
    await vi.waitFor(() => expect(received).toHaveLength(1), inTime);
    expect(service.messages.filter(({ type }) => type === 'task_rejected')).toHaveLength(1);
  });

  test.each([
    ['a line break', 'ryk_a\nb'],
    ['a carriage return', 'ryk_a\rb'],
    ['a space', 'ryk_a b'],
    ['a letter outside of ASCII', 'ryk_ä€'],
  ])('is refused with an error message, without a crash, for a key with %s', async (_name, key) => {
    const lines: string[] = [];
    const refused = vi.fn();
    start({
      key,
      onRefused: refused,
      log: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    });
    await vi.waitFor(() => expect(refused).toHaveBeenCalled(), inTime);
    expect(lines.join('')).toContain('the key of RUNYARD_API_KEY holds a line break');
    expect(lines.join(''), 'the key is in no log').not.toContain('ryk_');
    expect(service.connectionCount()).toBe(0);
  });
});

describe('the instance token of a worker', () => {
  test('is sent by the next process of the data folder, as proof that it continues the work of an earlier process', async () => {
    const first = openInstanceToken(folder, silent);
    expect(first.proof()).toEqual({});
    first.keep('a');
    const second = openInstanceToken(folder, silent);
    expect(second.proof()).toEqual({ token: 'a' });
    second.keep('b');
    expect(openInstanceToken(folder, silent).proof()).toEqual({ token: 'b' });
  });

  test('is kept in memory if the file cannot be written', async () => {
    await writeFile(path.join(folder, 'file'), '');
    const token = openInstanceToken(path.join(folder, 'file'), silent);
    token.keep('a');
    expect(token.proof()).toEqual({ token: 'a' });
  });
});
