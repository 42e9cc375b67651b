import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { prefix } from '../../../../test/fakes/harness-support/reports.ts';
import { type FakeHarnessSupport, fakeTask, startFakeHarnessSupport } from '../../../../test/fakes/harness-support.ts';
import { runTree } from '../run-tree/tree.ts';
import { type ServiceClient, serviceClient } from './client.ts';
import { connectToService } from './connection.ts';
import { AnswerTooLarge, ServiceRefusal, Superseded, UnreadableBody } from './errors.ts';

let fake: FakeHarnessSupport;
beforeEach(async () => {
  fake = await startFakeHarnessSupport();
});
afterEach(() => fake.close());

const client = (token = fake.token) => {
  const { url: serverRoot, socketPath: relaySocket } = fake;
  const connection = connectToService({ serverRoot, relaySocket, token });
  return serviceClient({ connection, firstRetryMs: 1, maxRetryMs: 5 });
};

describe.each(['TCP', "the relay's socket"])('the service client over %s', (way) => {
  beforeEach(async () => {
    if (way === 'TCP') return undefined;
    const folder = mkdtempSync(path.join(tmpdir(), 'runyard-client-'));
    await fake.close();
    fake = await startFakeHarnessSupport({ socketPath: path.join(folder, 'relay.sock') });
    return () => rmSync(folder, { recursive: true });
  });

  test.each([500, 502, 503, 429, 408, 'cut'] as const)('repeats a request after %s', async (status) => {
    let faults = 3;
    fake.fault = () => (faults-- > 0 ? { status } : undefined);
    expect(await client().resolvePrompt()).toMatchObject({ run_id: 'run-1' });
    expect(fake.requests).toHaveLength(4);
  });

  test('waits for the time in Retry-After before it repeats a request', async () => {
    let faults = 1;
    fake.fault = () => (faults-- > 0 ? { status: 503, headers: { 'retry-after': '1' } } : undefined);
    const started = performance.now();
    await client().resolvePrompt();
    expect(performance.now() - started).toBeGreaterThan(990);
  });

  test('repeats a request if the service sends nothing within the timeout', async () => {
    let silent = 1;
    fake.fault = ({ path }) => {
      if (path.endsWith('/resolve-prompt') && silent-- > 0)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
      return undefined;
    };
    expect(await client().resolvePrompt({ idleTimeoutMs: 500 })).toMatchObject({ run_id: 'run-1' });
  });

  test('takes the status 401 as the end of the execution and does not repeat the request', async () => {
    await expect(client('wrong').resolvePrompt()).rejects.toBeInstanceOf(Superseded);
    expect(fake.requests).toHaveLength(1);
  });

  test('reports the reason and the code of a refusal', async () => {
    fake.fault = () => ({
      status: 403,
      body: JSON.stringify({ title: 'Not authorized', detail: 'other team', error_code: 'not_authorized' }),
    });
    const refusal = await client()
      .resolvePrompt()
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ServiceRefusal);
    expect(refusal).toMatchObject({
      status: 403,
      errorCode: 'not_authorized',
      message: expect.stringContaining('other team'),
    });
    expect(fake.requests).toHaveLength(1);
  });

  test('stops at once when it is aborted', async () => {
    fake.fault = () => ({ status: 503 });
    const abort = new AbortController();
    const asked = client().resolvePrompt({ signal: abort.signal });
    while (fake.requests.length < 3) await new Promise(setImmediate);
    abort.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  });

  test('refuses a download that is larger than the limit', async () => {
    fake.files.set('/big', Buffer.alloc(1000));
    await expect(client().download('/big', 999)).rejects.toBeInstanceOf(AnswerTooLarge);
    expect(await client().download('/big', 1000)).toHaveLength(1000);
  });

  test('replaces characters that the service cannot store, in the bodies of all requests', async () => {
    const bad = 'a\u0000b\ud83dc';
    const good = 'a\ufffdb\ufffdc';
    const bodies: unknown[] = [];
    fake.more = async ({ body }) => {
      bodies.push(body);
      return { status: 200, value: { run_id: 'r', state: 'QUEUED' } };
    };
    const asked = client();
    await asked.finishTask({ success: false, summary: bad, error: { message: bad } });
    await asked.reportShutdown(bad);
    await asked.reportArtifact({ artifact_type: 'PLAN', data: { title: bad, content: bad } });
    await asked.uploadSnapshot({ turn: 1, files: [{ filename: bad, size_bytes: 0 }] });
    await asked.ask('POST', 'messages', { body: { run_id: 'parent', message: bad } });
    await asked.ask('POST', 'child-runs', { body: { prompt: bad, title: bad } });
    expect(fake.finished).toEqual([{ success: false, summary: good, error: { message: good } }]);
    expect(fake.shutdowns).toEqual([good]);
    expect(fake.artifacts.map(({ data }) => data)).toEqual([{ title: good, content: good }]);
    expect(fake.snapshots[0]?.files[0]?.filename).toBe(good);
    expect(bodies).toEqual([
      { run_id: 'parent', message: good },
      { prompt: good, title: good },
    ]);
  });

  test('does not repeat a request whose body cannot be read', async () => {
    const broken = () =>
      Readable.from(
        (async function* () {
          yield Buffer.from('x');
          throw new UnreadableBody('gone');
        })(),
      );
    await expect(client().upload('/uploads/artifact-1', broken, 10, 'text/plain')).rejects.toThrow('gone');
  });
});

describe('requests of the client that wait long', () => {
  const { signal } = new AbortController();

  test.each([
    [
      'many waits for other runs',
      (asked: ServiceClient) => runTree(asked, fakeTask()).wait({ until: 'all', timeoutMs: 60_000 }, signal),
    ],
    ['many cancels of other runs', (asked: ServiceClient) => runTree(asked, fakeTask()).cancel('a', signal)],
    [
      'many uploads',
      (asked: ServiceClient) => asked.upload(`${prefix}/slow`, () => Readable.from(['{}']), 2, 'text/plain'),
    ],
  ])('%s do not delay events, the inbox and the end of a turn', async (_, wait) => {
    const answered = Promise.withResolvers<{ status: number; value: unknown }>();
    let waiting = 0;
    fake.more = () => {
      waiting += 1;
      return answered.promise;
    };
    const asked = client();
    const waits = Array.from({ length: 40 }, () => wait(asked).catch(() => {}));
    while (waiting < 16) await new Promise(setImmediate);
    fake.tell({ type: 'leave' });
    expect(await asked.sendEvents('{"events":[]}')).toEqual({ acknowledged: 0 });
    expect(await asked.pollInbox(60_000, { after: 0, interrupted: 0, changes: 0, held: 0 })).toEqual({
      items: [{ type: 'leave' }],
    });
    expect(await asked.finishTask({ success: true, summary: '' })).toEqual({ next: 'leave' });
    answered.resolve({ status: 400, value: {} });
    await Promise.all(waits);
    expect(waiting).toBe(40);
  });
});
