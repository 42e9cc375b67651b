import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApiError, type Client, ConnectionError, createClient, EventsGoneError } from '@runyard/client';
import { describe, expect, test, vi } from 'vitest';
import { openTestService } from '../packages/service/test/service.ts';

const service = await openTestService();
const client: Client = createClient({ baseUrl: service.baseUrl, apiKey: service.key, userAgent: 'runyard-cli/test' });

describe('the client', () => {
  test('creates, reads, lists and cancels runs', async () => {
    const { run_id } = await client.createRun({ body: { prompt: 'Say hello', metadata: { a: 'b' } } });
    const run = await client.getRun({ params: { runId: run_id } });
    expect(run).toMatchObject({ run_id, source: 'CLI' });
    const page = await client.listRuns({ query: { state: ['QUEUED', 'CLAIMED'], metadata: { a: 'b' }, limit: 1 } });
    expect(page.runs.map((each) => each.run_id)).toEqual([run_id]);
    expect(await client.cancelRun({ params: { runId: run_id } })).toBe(run_id);
  });

  test('calls operations without arguments and follows redirects', async () => {
    expect((await client.listModels()).default_model_id).toBe('runbook');
    const { runId, runToken } = await service.startExecution();
    await service.report(runToken, [{ seq: 1, occurred_at: '2026-11-21T10:00:00Z', type: 'transcript', line: '{}' }]);
    const { location } = await client.getRunTranscript({ params: { runId } });
    expect(await (await fetch(location)).text()).toBe('{}\n');
  });

  test('throws an error with the problem document of the service', async () => {
    const asked = client.getRun({ params: { runId: 'x' } });
    await expect(asked).rejects.toThrow(ApiError);
    await expect(asked).rejects.toMatchObject({
      status: 404,
      retryable: false,
      problem: { error_code: 'resource_not_found' },
    });
  });

  test('lets the service refuse unknown members only with the option strict', async () => {
    const newer = { prompt: 'Say hello', colour: 'red' };
    const strict = createClient({ baseUrl: service.baseUrl, apiKey: service.key, strict: true });
    await expect(strict.createRun({ body: newer })).rejects.toMatchObject({
      problem: { errors: [expect.objectContaining({ path: 'colour' })] },
    });
    expect(await client.createRun({ body: newer })).toMatchObject({ state: 'QUEUED' });
  });

  test('reports that a service does not answer', async () => {
    const nobody = createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0 });
    await expect(nobody.listModels()).rejects.toThrow(ConnectionError);
  });

  test('follows a run until it has ended', async () => {
    const { run_id } = await client.createRun({ body: { prompt: 'Say hello' } });
    const seen: string[] = [];
    for await (const { event } of client.streamRunEvents(run_id)) {
      if (event.type === 'state') seen.push(event.state);
      if (seen.length === 1) await client.cancelRun({ params: { runId: run_id } }).catch(() => undefined);
    }
    expect(seen[0]).toBe('QUEUED');
    expect(seen.at(-1)).toBe('CANCELLED');
  });

  test('ends the stream of an ended run at once if the caller passes the id of the last event of the run', async () => {
    const { run_id } = await client.createRun({ body: { prompt: 'Say hello' } });
    await client.cancelRun({ params: { runId: run_id } });
    let lastEventId = '';
    for await (const { id } of client.streamRunEvents(run_id)) lastEventId = id;
    for await (const _ of client.streamRunEvents(run_id, { lastEventId })) throw new Error('there is no event');
  });

  test('follows the runs of the team', async () => {
    const controller = new AbortController();
    const seen = new Set<string>();
    const follow = async () => {
      for await (const { event } of client.streamTeamEvents({ signal: controller.signal })) seen.add(event.run_id);
    };
    const following = expect(follow()).rejects.toThrow('enough');
    const created: string[] = [];
    // The stream contains only events that happen after it was opened. The test does not know this moment, so create runs until one of them
    // appears in the stream.
    const create = async () => {
      created.push((await client.createRun({ body: { prompt: 'Say hello' } })).run_id);
      return created.some((id) => seen.has(id));
    };
    await vi.waitUntil(create, { timeout: 60_000, interval: 100 });
    controller.abort(new Error('enough'));
    await following;
  });

  test('follows the deliveries to the webhooks of the team', async () => {
    const { uid: factoryUid } = await client.createFactory({ body: { name: randomUUID() } });
    const { url, secret = '' } = await client.createWebhook({ params: { factoryUid }, body: { name: 'W' } });
    const controller = new AbortController();
    const seen = new Set<string>();
    const follow = async () => {
      for await (const { event } of client.streamTeamDeliveries({ signal: controller.signal }))
        seen.add(event.delivery.delivery_id);
    };
    const following = expect(follow()).rejects.toThrow('enough');
    const sent: string[] = [];
    const send = async () => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}` },
        body: String(sent.length),
      });
      sent.push(((await answer.json()) as { delivery_id: string }).delivery_id);
      return sent.some((id) => seen.has(id));
    };
    await vi.waitUntil(send, { timeout: 60_000, interval: 500 });
    controller.abort(new Error('enough'));
    await following;
  });

  test('stops following a run when the caller aborts the signal', async () => {
    const { run_id } = await client.createRun({ body: { prompt: 'Say hello' } });
    const controller = new AbortController();
    const follow = async () => {
      for await (const _ of client.streamRunEvents(run_id, { signal: controller.signal }))
        controller.abort(new Error('enough'));
    };
    await expect(follow()).rejects.toThrow('enough');
  });
});

/** Starts a server that answers each request with the next of the given handlers. */
async function scripted(...handlers: Parameters<typeof createServer>[1][]) {
  const requests: { url: string; headers: Record<string, unknown> }[] = [];
  const server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', headers: request.headers });
    handlers[Math.min(requests.length, handlers.length) - 1]?.(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { baseUrl, requests, close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) };
}

describe('over bad connections the client', () => {
  test('repeats a create with the same Idempotency-Key after a lost answer', async () => {
    const fake = await scripted(
      (_, response) => response.destroy(),
      (_, response) => response.end(JSON.stringify({ run_id: 'r', task_id: 'r', state: 'QUEUED' })),
    );
    const created = await createClient(fake).createRun({ body: { prompt: 'a' } });
    expect(created.run_id).toBe('r');
    const [first, second] = fake.requests.map(({ headers }) => headers['idempotency-key']);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
    await fake.close();
  });

  test('does not repeat a cancel after a lost answer', async () => {
    const fake = await scripted((_, response) => response.destroy());
    await expect(createClient(fake).cancelRun({ params: { runId: 'r' } })).rejects.toThrow(ConnectionError);
    expect(fake.requests).toHaveLength(1);
    await fake.close();
  });

  test('continues a broken stream after the last event that it has received, and skips unknown kinds of events', async () => {
    const state = (id: number, name: string) => `id: ${id}\nevent: state\ndata: {"type":"state","state":"${name}"}\n\n`;
    const fake = await scripted(
      (_, response) => {
        response.write(`:\n\n${state(1, 'QUEUED')}id: 2\ndata: {"type":"song"}\n\n${state(3, 'CLAIMED').slice(0, 20)}`);
        setTimeout(() => response.destroy(), 20);
      },
      (_, response) => response.end(`${state(3, 'CLAIMED')}${state(4, 'SUCCEEDED')}`),
    );
    const seen: [string, string][] = [];
    for await (const { id, event } of createClient(fake).streamRunEvents('r'))
      if (event.type === 'state') seen.push([id, event.state]);
    expect(seen).toEqual([
      ['1', 'QUEUED'],
      ['3', 'CLAIMED'],
      ['4', 'SUCCEEDED'],
    ]);
    expect(fake.requests[1]?.headers['last-event-id']).toBe('2');
    await fake.close();
  });

  test('waits before a new connection for the time in the field `retry` of the stream, and stops when the stream sends the comment `end`', async () => {
    const times: number[] = [];
    const fake = await scripted(
      (_, response) => {
        times.push(performance.now());
        response.write('retry: 600\n\nid: 5\n\n');
        setTimeout(() => response.destroy(), 20);
      },
      (_, response) => {
        times.push(performance.now());
        response.end(': end\n\n');
      },
    );
    for await (const _ of createClient(fake).streamRunEvents('r')) throw new Error('there is no event');
    expect(fake.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '5']);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(300);
    await fake.close();
  });

  test('throws EventsGoneError if the service has deleted the events after the given id', async () => {
    const fake = await scripted((_, response) => response.writeHead(410).end());
    const asked = createClient(fake).streamTeamEvents({ lastEventId: 'old' }).next();
    await expect(asked).rejects.toThrow(EventsGoneError);
    await fake.close();
  });

  test('turns an error page of a proxy into a problem document', async () => {
    const fake = await scripted((_, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'));
    const client = createClient({ ...fake, retries: 1 });
    await expect(client.listModels()).rejects.toMatchObject({ status: 502, retryable: true });
    expect(fake.requests).toHaveLength(2);
    await fake.close();
  });
});
