import { connect, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { openTestService, startTestService } from '../../../../test/service.ts';
import { followStream, stateNames, untilState } from '../../../../test/stream.ts';
import { mergeOldEvents } from '../../../runs/conversations/retention.ts';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';

const service = await openTestService();

const follow = (path: string, lastId?: string, key?: string) => followStream(service, path, lastId, key);

const text = (seq: number) => ({
  seq,
  occurred_at: '2026-11-21T10:00:00Z',
  type: 'text',
  step_id: 's',
  message_id: 'm',
  role: 'assistant',
  text: `Word ${seq}`,
});

async function say(runToken: string, from: number, to: number): Promise<void> {
  const events = Array.from({ length: to - from + 1 }, (_, index) => text(from + index));
  await service.ok('POST', '/harness-support/events', { key: runToken, body: { events } });
}

describe('the stream of a run', () => {
  test('sends all events from the beginning, then new events, and ends with the run', async () => {
    const { runId, runToken } = await service.startExecution();
    await say(runToken, 1, 3);
    const reader = await follow(`/agent/runs/${runId}/events`);
    await vi.waitFor(() => expect(reader.received.at(-1)?.event).toMatchObject({ event: { text: 'Word 3' } }), 60_000);
    await say(runToken, 4, 4);
    await vi.waitFor(() => expect(reader.received.at(-1)?.event).toMatchObject({ event: { text: 'Word 4' } }), 60_000);
    expect(await cancelRun(service.deps.executionDeps, runId)).toBe('cancelled');
    await reader.ended;
    expect(stateNames(reader)).toEqual(['QUEUED', 'PENDING', 'CLAIMED', 'CANCELLED']);
  });

  test('resumes after every id, also after the first of two events of one change', async () => {
    const { runId, runToken } = await service.startExecution();
    await say(runToken, 1, 2);
    await cancelRun(service.deps.executionDeps, runId);
    const whole = await follow(`/agent/runs/${runId}/events`);
    await whole.ended;
    expect(new Set(whole.received.map(({ id }) => id)).size).toBe(whole.received.length);
    for (const [index, { id }] of whole.received.entries()) {
      const rest = await follow(`/agent/runs/${runId}/events`, id);
      await rest.ended;
      expect(rest.received).toEqual(whole.received.slice(index + 1));
    }
  });

  test('ends with a failed setup, and can be read again for each turn in the debug window', async () => {
    const { runId, runToken } = await service.startExecution();
    const path = `/agent/runs/${runId}/events`;
    const finish = (turn: number, report: object) =>
      service.request('POST', '/harness-support/finish-task', { key: runToken, body: { turn, ...report } });
    const followUp = (body: object) => service.request('POST', `/agent/runs/${runId}/followups`, { body });
    const error = { code: 'environment_setup_failed', message: 'It broke.' };
    await finish(1, { success: false, summary: 'x', error });
    const whole = await follow(path);
    await whole.ended;
    expect(stateNames(whole).at(-1)).toBe('FAILED');
    const ids = [whole.lastId()];
    const rests: unknown[] = [];

    /** Connects a reader again, and stores the events that it gets. Calls `end` after the reader has got the text `last`. */
    const comeBack = async (last: string, end: () => Promise<unknown>) => {
      const reader = await follow(path, ids.at(-1));
      await vi.waitFor(() => expect(JSON.stringify(reader.received)).toContain(last), { timeout: 60_000 });
      await end();
      await reader.ended;
      expect(stateNames(reader)).toEqual([]);
      ids.push(reader.lastId());
      rests.push(...reader.received);
    };

    const tell = (seq: number, event: object) => {
      const events = [{ seq, occurred_at: '2026-11-21T10:00:00Z', step_id: 's', ...event }];
      return service.report(runToken, events);
    };
    /** The agent takes the follow-up. */
    const take = async (seq: number) => {
      const body = await service.ok<{ items: { id: string }[] }>('GET', '/harness-support/inbox', { key: runToken });
      await tell(seq, { type: 'follow_up_taken', follow_up_id: body.items[0]?.id });
    };

    await followUp({ message: 'Look.' });
    await take(1);
    await say(runToken, 2, 2);
    await comeBack('Word 2', async () => {
      await say(runToken, 3, 3);
      await tell(4, { type: 'blocked', request: { request_id: 'q1', kind: 'question', title: 'Which?' } });
    });
    await followUp({ message: 'That one.' });
    await comeBack('followup_received', async () => {
      await take(5);
      await say(runToken, 6, 6);
      await finish(2, { success: true, summary: 'Seen.' });
    });
    expect(JSON.stringify(rests)).toMatch(/Word 2.*Word 3.*Which\?.*Word 6/);
    const again = await follow(path, ids[0]);
    await again.ended;
    expect(again.received, 'and who comes later gets them all').toEqual(rests);
  });

  test.each([['x'], ['-1'], ['1e3'], ['1.2'], ['0.1'], ['99999'], ['9'.repeat(30)]])(
    'answers 400 for the id %s, which is not an id of this stream',
    async (id) => {
      const runId = await service.newRun();
      const headers = { 'last-event-id': id };
      const problem = await service.problem(400, 'GET', `/agent/runs/${runId}/events`, { headers });
      expect(problem.errors).toMatchObject([{ path: 'Last-Event-ID' }]);
    },
  );

  test('answers 404 for a run of another team, 401 without a key', async () => {
    const path = `/agent/runs/${await service.newRun()}/events`;
    await service.problem(404, 'GET', path, { key: service.otherKey });
    await service.problem(401, 'GET', path, { key: null });
  });

  test('answers 410 if the reader missed events that were deleted, and otherwise continues', async () => {
    const { runId, runToken } = await service.startExecution();
    await say(runToken, 1, 5);
    await cancelRun(service.deps.executionDeps, runId);
    const whole = await follow(`/agent/runs/${runId}/events`);
    await whole.ended;
    const words = whole.received.filter(({ event }) => event.type === 'conversation');
    await service.deps.db.query(
      `UPDATE runs SET events_kept_after = (SELECT max(seq) FROM conversation_events WHERE run_id = $1) WHERE id = $1`,
      [runId],
    );
    await service.deps.db.query('DELETE FROM conversation_events WHERE run_id = $1', [runId]);
    const headers = { 'last-event-id': words.at(-2)?.id ?? '' };
    const problem = await service.problem(410, 'GET', `/agent/runs/${runId}/events`, { headers });
    expect(problem).toMatchObject({ error_code: 'resource_not_found', retryable: false });
    expect(problem.detail).toContain('without Last-Event-ID');
    for (const id of [words.at(-1)?.id, whole.received.at(-1)?.id]) {
      const rest = await follow(`/agent/runs/${runId}/events`, id);
      await rest.ended;
      expect(rest.received).toEqual(whole.received.slice(whole.received.findIndex((each) => each.id === id) + 1));
    }
    const anew = await follow(`/agent/runs/${runId}/events`);
    await anew.ended;
    expect(anew.received).toEqual(whole.received.filter(({ event }) => event.type !== 'conversation'));
  });

  test('answers 410 for an id inside merged events, and resumes after all other ids', async () => {
    const { runId, runToken } = await service.startExecution();
    await say(runToken, 1, 5);
    await cancelRun(service.deps.executionDeps, runId);
    const whole = await follow(`/agent/runs/${runId}/events`);
    await whole.ended;
    await service.deps.db.query(
      `UPDATE runs SET ended_at = now() - interval '2 days', in_sandbox = false WHERE id = $1`,
      [runId],
    );
    while ((await mergeOldEvents(service.deps.db)).more);
    const merged = await follow(`/agent/runs/${runId}/events`);
    await merged.ended;
    expect(merged.received).toHaveLength(whole.received.length - 4);
    const words = merged.received.find(({ event }) => event.type === 'conversation');
    expect(words?.event).toMatchObject({ event: { text: 'Word 1Word 2Word 3Word 4Word 5' } });
    for (const { id } of whole.received) {
      const index = merged.received.findIndex((each) => each.id === id);
      if (index < 0) {
        await service.problem(410, 'GET', `/agent/runs/${runId}/events`, { headers: { 'last-event-id': id } });
        continue;
      }
      const rest = await follow(`/agent/runs/${runId}/events`, id);
      await rest.ended;
      expect(rest.received).toEqual(merged.received.slice(index + 1));
    }
  });

  test('ends when the run is deleted', async () => {
    const runId = await service.newRun();
    const reader = await follow(`/agent/runs/${runId}/events`);
    await untilState(reader, 'QUEUED');
    await service.deps.db.query('DELETE FROM runs WHERE id = $1', [runId]);
    await service.deps.db.query(`SELECT pg_notify('runyard_runs', $1)`, [runId]);
    await reader.ended;
  });

  test('is cut when its key is deleted', async () => {
    const key = await service.newKey();
    const reader = await follow(`/agent/runs/${await service.newRun()}/events`, undefined, key);
    await untilState(reader, 'QUEUED');
    await service.deps.db.query('DELETE FROM api_keys WHERE last_four = $1', [key.slice(-4)]);
    await service.deps.db.query(`SELECT pg_notify('runyard_keys', '')`);
    await reader.ended;
  });
});

test('a stream buffers one page for a reader that does not read, and does not delay other readers', async () => {
  const { runId } = await service.startExecution();
  const serverSides: Socket[] = [];
  service.app.server.on('connection', (socket: Socket) => serverSides.push(socket));
  const paused = connect(Number(new URL(service.baseUrl).port), '127.0.0.1').pause();
  paused.write(
    `GET /api/v1/agent/runs/${runId}/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\n\r\n`,
  );
  await vi.waitFor(() => expect(serverSides).toHaveLength(1), 60_000);
  const other = await follow(`/agent/runs/${runId}/events`);
  let most = 0;
  for (let batch = 0; batch < 20; batch += 1) {
    // 1 MB that cannot be compressed.
    await service.deps.db.query(
      `WITH n AS (UPDATE runs SET event_seq = event_seq + 50 WHERE id = $1 RETURNING event_seq)
       INSERT INTO conversation_events (run_id, seq, execution_id, event)
       SELECT $1, event_seq - 50 + i, $1, jsonb_build_object('type', 'text', 'text', (SELECT string_agg(md5(random()::text || g), '') FROM generate_series(1, 640) AS g))
       FROM n, generate_series(1, 50) AS i`,
      [runId],
    );
    await service.deps.db.query(`SELECT pg_notify('runyard_runs', $1)`, [runId]);
    const due = (batch + 1) * 50;
    await vi.waitFor(
      () => expect(other.received.filter(({ event }) => event.type === 'conversation')).toHaveLength(due),
      { timeout: 60_000 },
    );
    most = Math.max(most, serverSides[0]?.writableLength ?? 0);
  }
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(2_000_000);
  other.close();
  let bytes = 0;
  paused.on('data', (data: Buffer) => {
    bytes += data.length;
  });
  paused.resume();
  await vi.waitFor(() => expect(bytes).toBeGreaterThan(20_000_000), { timeout: 60_000 });
  paused.destroy();
});

test('a stream answers HEAD and ends', async () => {
  for (const path of [`/agent/runs/${await service.newRun()}/events`, '/agent/runs/events']) {
    const answer = await service.request('HEAD', path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  }
});

test('a stream ends when the service closes', async () => {
  const other = await startTestService();
  const controller = new AbortController();
  const open = async (path: string) =>
    await fetch(`${other.baseUrl}/api/v1${path}`, {
      headers: { authorization: `Bearer ${other.key}` },
      signal: controller.signal,
    });
  const streams = [await open(`/agent/runs/${await other.newRun()}/events`), await open('/agent/runs/events')];
  // Read the streams to their end. Without the close of the service, they would never end.
  await Promise.all([other.close(), ...streams.map((response) => response.text())]);
});

describe('a stream with follow=false', () => {
  test('ends after the stored events of a running run, and resumes after them', async () => {
    const { runId, runToken } = await service.startExecution();
    await say(runToken, 1, 300);
    const first = await follow(`/agent/runs/${runId}/events?follow=false`);
    await first.ended;
    expect(first.received.filter(({ event }) => event.type === 'conversation')).toHaveLength(300);
    const again = await follow(`/agent/runs/${runId}/events?follow=false`, first.lastId());
    await again.ended;
    expect(again.received).toEqual([]);
    await say(runToken, 301, 302);
    const more = await follow(`/agent/runs/${runId}/events?follow=false`, first.lastId());
    await more.ended;
    expect(more.received).toHaveLength(2);
  });

  test('ends while other readers follow the same run', async () => {
    const { runId, runToken } = await service.startExecution();
    const other = await follow(`/agent/runs/${runId}/events`);
    await say(runToken, 1, 3);
    const first = await follow(`/agent/runs/${runId}/events?follow=false`);
    await first.ended;
    expect(first.received.at(-1)?.event).toMatchObject({ type: 'conversation', event: { text: 'Word 3' } });
    await say(runToken, 4, 4);
    await vi.waitFor(() => expect(other.received.at(-1)?.event).toMatchObject({ event: { text: 'Word 4' } }), {
      timeout: 60_000,
    });
    other.close();
    await other.ended;
  });

  test('answers 400 if follow is not a boolean', async () => {
    const runId = await service.newRun();
    await service.problem(400, 'GET', `/agent/runs/${runId}/events?follow=perhaps`);
  });
});

test('a key gets a limited number of streams, and may open another when one ends', async () => {
  const small = await startTestService({ env: { RUNYARD_EVENT_STREAMS: '8' } });
  try {
    const run = await small.newRun();
    const paths = ['/agent/runs/events', `/agent/runs/${run}/events`] as const;
    const readers = [await followStream(small, paths[0]), await followStream(small, paths[1])];
    for (const path of paths) {
      const refused = await small.request('GET', path);
      expect(refused).toMatchObject({ status: 429, body: { detail: expect.stringContaining('2 event streams open') } });
      expect(refused.headers.get('retry-after')).toBe('30');
    }
    const other = await followStream(small, paths[0], undefined, await small.newKey());
    readers[0]?.close();
    const again = () =>
      followStream(small, paths[1]).then(
        (reader) => reader,
        () => null,
      );
    let reader: Awaited<ReturnType<typeof again>> = null;
    await expect.poll(async () => (reader ??= await again())).not.toBeNull();
    for (const each of [...readers, other, reader]) (each as typeof other | null)?.close();
  } finally {
    await small.close();
  }
});
